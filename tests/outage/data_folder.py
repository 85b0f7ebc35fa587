"""A data folder whose files can be put aside and put back, one by one, and commands over it."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

from perdure import App, Settings, open_app
from tests.cli.desk import COMMAND, WAIT_S, Finished
from tests.outage.acting import PLACE, agent
from tests.temporal.outside import Outside

STORE, TEMPORAL = "store.db", "temporal.db"
REPOSITORY = Path(__file__).parents[2]


class DataFolder:
    def __init__(self, home: Path) -> None:
        self.home = home / "data"
        self.outside = Outside(home / "outside.log")
        self.settings = Settings.from_environment({}, self.home)

    @contextlib.asynccontextmanager
    async def app(self) -> AsyncIterator[App]:
        async with open_app(agent, settings=self.settings, drain_s=0.1) as app:
            yield app

    def keep(self, name: str) -> None:
        """Copy the data folder; everything is closed."""
        shutil.copytree(self.home, self.home.with_name(name))

    def put_back(self, file: str, name: str) -> None:
        """Put one database back as it was kept, with whatever belongs to it."""
        for suffix in ("", "-wal", "-shm"):
            (self.home / f"{file}{suffix}").unlink(missing_ok=True)
            kept = self.home.with_name(name) / f"{file}{suffix}"
            if kept.exists():
                shutil.copy2(kept, self.home / kept.name)

    def open(self, turn: int) -> None:
        """Let the held call of that turn go on."""
        (self.home.parent / f"open-{turn}").touch()

    @property
    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE", "TEMPORAL"))}
        place = str(self.home.parent)
        return {**given, "PERDURE_HOME": str(self.home), PLACE: place, "PYTHONUNBUFFERED": "1"}

    async def perdure(self, *words: str, **environment: str) -> Finished:
        """Run a command over this data folder, from where the agent is found."""
        return await asyncio.to_thread(self.perdure_now, *words, **environment)

    def perdure_now(self, *words: str, **environment: str) -> Finished:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=REPOSITORY,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)
