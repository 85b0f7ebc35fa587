"""A backup that is taken under load, restored, and gone on with: one moment of both, and nothing parks."""

import asyncio
import json
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from perdure import App, Task
from perdure.app.settings import SECRETS_FILE
from perdure.core.ports import StoredEvent
from perdure.core.state import TERMINAL
from tests.outage.acting import PLACE
from tests.outage.data_folder import STORE, TEMPORAL, DataFolder
from tests.outage.load import Load
from tests.temporal.bench import event, logged, rows_of, until

pytestmark = pytest.mark.slow

SENDERS = 3


@pytest.mark.slow
async def test_a_backup_under_load_goes_on_from_its_moment(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = data.home.with_name("backup")
    data.open(1)
    async with data.app() as app:
        held = await app.send("held")
        await until(lambda: any(noted.key == f"{held.id}/3/0" for noted in data.outside.of("hold")))
        load = Load(app)
        senders = [asyncio.create_task(load.send(str(number))) for number in range(SENDERS)]
        await load.more(8)
        before = {task_id: list(ids) for task_id, ids in load.messages.items()}
        done = await data.perdure("backup", str(folder), "--json")
        assert done.code == 0, done.err
        await load.more(5)  # whoever waited goes on
        load.ending = True
        await asyncio.gather(*senders)
    said = json.loads(done.out)
    print(said)
    assert said["open_tasks"] >= len(before)
    assert sorted(path.name for path in folder.iterdir()) == [STORE, TEMPORAL]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    # Another world, in which nothing has happened since.
    other = data.home.parent / "other"
    other.mkdir()
    shutil.copytree(folder, other / "data")
    monkeypatch.setenv(PLACE, str(other))
    restored = DataFolder(other)
    restored.open(3)
    async with restored.app() as app:
        answer = await event(app.task(held.id), "run.ended")
        assert answer.data["end"] == "answered"
        for task_id in {*before, *(row.header.task_id for row in await app.tasks(1000))}:
            stored = await came_to_rest(app, app.task(task_id))
            promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
            assert promoted[: len(before.get(task_id, []))] == before.get(task_id, []), "P1"
            assert len(set(promoted)) == len(promoted), "P1"
            assert {row.data["reason"] for row in rows_of(stored, "run.ended")} == {""}, "a task was parked"
    assert set(restored.outside.keys().values()) <= {1}, "P3"


async def came_to_rest(app: App, task: Task) -> list[StoredEvent]:
    async def rests() -> bool:
        monitor, row = await task.monitor(), await task.row()
        state = await app.client.state(task.id)
        return not monitor.flights and not monitor.unwritten and not state.inbox and row.state != "working"

    assert (await task.row()).state not in TERMINAL
    await until(rests)
    assert (await task.monitor()).diverged == ""
    return await logged(app.store, task.id)


def test_nothing_is_overwritten_and_nothing_is_left_behind(tmp_path: Path, data: DataFolder) -> None:
    data.home.mkdir()
    for name in (STORE, TEMPORAL):
        with sqlite3.connect(data.home / name) as connection:
            connection.execute("CREATE TABLE tasks (terminal_number INTEGER)")
        connection.close()
    full = tmp_path / "full"
    full.mkdir()
    (full / "kept").write_text("mine")
    done = data.perdure_now("backup", str(full))
    assert done.code == 2
    assert "DIR: " in done.err
    assert "is not empty" in done.err
    assert [path.name for path in full.iterdir()] == ["kept"]

    (data.home / TEMPORAL).write_bytes(b"no database" * 1000)
    done = data.perdure_now("backup", str(tmp_path / "new"))
    assert done.code == 1
    assert TEMPORAL in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"data", "full"}


def test_the_key_of_what_is_sealed_is_taken_along(tmp_path: Path, data: DataFolder) -> None:
    data.home.mkdir()
    for name in (STORE, TEMPORAL):
        with sqlite3.connect(data.home / name) as connection:
            connection.execute("CREATE TABLE tasks (terminal_number INTEGER)")
        connection.close()
    (data.home / SECRETS_FILE).write_text("a key")
    assert data.perdure_now("backup", str(tmp_path / "new")).code == 0
    copy = tmp_path / "new" / SECRETS_FILE
    assert (copy.read_text(), stat.S_IMODE(copy.stat().st_mode)) == ("a key", 0o600)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PERDURE_STORE_URL": "postgresql://someone@127.0.0.1/perdure"}, ("PERDURE_STORE_URL", "pg_dump")),
        (
            {"TEMPORAL_ADDRESS": "127.0.0.1:7233", "PERDURE_STORE_URL": "sqlite:////tmp/none/store.db"},
            ("TEMPORAL_ADDRESS", "not embedded"),
        ),
        ({}, ("PERDURE_HOME", "nothing has run there yet")),
    ],
)
def test_what_is_not_copied_here_is_said(data: DataFolder, environment: dict[str, str], words: tuple[str, ...]) -> None:
    done = data.perdure_now("backup", str(data.home / "new"), **environment)
    assert done.code == 2
    assert all(word in done.err for word in words), done.err
