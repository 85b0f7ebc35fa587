"""Files, a database and the time by three public servers, from one agent's file, through two crashes.

Two are of PyPI (one of them built on an SDK before ours, which claims nothing of its tools), one is of npm. What they
did is read here past all of them: the database's rows, the file.
"""

import asyncio
import contextlib
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.app.faults import once_paths
from perdure.app.judging import broken_promises
from perdure.app.loading import load_agent
from perdure.app.supervisor import Fleet, supervised
from perdure.core.faults import read_faults
from tests.public_servers import clerk_model
from tests.temporal.bench import Bench

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / ".public-mcp-servers"
TEMPLATE = Path(__file__).with_name("clerk.toml.txt")
INSTALL_S = 600.0
WITHIN_S = 90.0

UNREACHED = re.compile(
    r"Connection|NewConnectionError|Temporary failure|timed out|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT",
    re.IGNORECASE,
)
"""What pip and npm say of a registry that they cannot reach."""

FAULT = "tool.after_effect:db.write_query,tool.after_effect:files.write_file"
"""The first is a call that nobody can look up, the second one that its server says is safe to repeat."""


@pytest.fixture(scope="module")
def servers() -> Path:
    """The servers, installed where the next run finds them."""
    done = subprocess.run(
        ["sh", ROOT / "scripts/public-mcp-servers", SERVERS],
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode != 0 and UNREACHED.search(done.stderr):
        pytest.skip(f"the registries of the public servers cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return SERVERS


async def test_p3_three_public_servers_from_one_file_make_no_second_effect_through_crashes(
    server: tuple[str, Client], servers: Path, tmp_path: Path
) -> None:
    address, client = server
    bench = Bench(address, tmp_path, client)
    (tmp_path / "files").mkdir()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY, item TEXT)")
        connection.commit()
    file = tmp_path / "clerk.toml"
    filled = {"@ID@": bench.queue, "@SERVERS@": str(servers), "@HOME@": str(tmp_path)}
    text = TEMPLATE.read_text()
    for name, value in filled.items():
        text = text.replace(name, value)
    file.write_text(text)

    environment = {
        "PERDURE_HOME": str(tmp_path),
        "PERDURE_TEST_PLACE": str(tmp_path),
        "PERDURE_STORE_URL": bench.settings.store_url,
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_TLS": "false",
        "PERDURE_FAULT": FAULT,
        "PERDURE_FAULT_ONCE": str(tmp_path / "died"),
    }
    fleet = Fleet(str(file), bench.queue, ROOT, tmp_path / "workers.log", environment, 1, 0.1)
    async with bench.app(load_agent(str(file)), worker=False) as app:
        assert {tool.name: tool.effect for tool in app.agent.spec().tools} == {
            "time.convert_time": "read",
            "db.read_query": "read",
            "db.write_query": "once",
            "files.read_text_file": "read",
            "files.write_file": "idempotent",
        }
        async with supervised(fleet, client, lambda change: None) as supervisor:
            watching = asyncio.create_task(supervisor.watch())
            try:
                task = await app.send("Order a jar and note it.")
                async with asyncio.timeout(WITHIN_S):
                    told = dict(line.split(" ", 1) for line in (await task.result()).splitlines())
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
        assert all(path.exists() for path in once_paths(tmp_path / "died", read_faults(FAULT))), "nobody was killed"
        events = [found async for found in task.events()]
        assert broken_promises(events, await app.store.effects(task.id)) == ()
        await bench.sound(task, app.store)

    assert told["time.convert_time"].startswith("ok: ")
    assert "T21:00" in told["time.convert_time"]
    assert told["db.write_query"].startswith("unknown: "), "P4: nobody can look it up"
    assert told["db.read_query"] == "ok: [{'jars': 1}]"
    assert told["files.write_file"].startswith("ok: ")
    assert clerk_model.TEXT in told["files.read_text_file"]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("SELECT item FROM orders").fetchall() == [("jar",)]
    assert (tmp_path / "files" / "note.txt").read_text() == clerk_model.TEXT
