"""Where one demo happens: a folder of its own under the data folder, with a Temporal, a store and a world.

The demo never uses the Temporal and the store that the environment names: it kills workers, and nothing of it belongs
among real tasks. A lock on the folder tells a demo that is running from one that is over.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.app.settings import Settings
from perdure.cli.demo.agent import HOLD_VARIABLE, MCP_VARIABLE, MODEL_VARIABLE, WORLD_VARIABLE
from perdure.core.errors import ConfigurationError

_LOCK = "demo.lock"


@dataclass(frozen=True)
class Stage:
    """The places of one demo."""

    folder: Path

    @property
    def world(self) -> Path:
        """The outside world's file."""
        return self.folder / "world.db"

    @property
    def hold(self) -> Path:
        """While this file exists, `get_order` is held open."""
        return self.folder / "hold"

    @property
    def notes(self) -> Path:
        """The director's notes, for whoever judges the demo again."""
        return self.folder / "notes.json"

    @property
    def worker_log(self) -> Path:
        """What the workers print."""
        return self.folder / "worker.log"

    @property
    def settings(self) -> Settings:
        """The demo's own Temporal and store, whatever the environment names."""
        return Settings.apart(self.folder)

    def environment(self, model: str | None, *, mcp: bool = False) -> dict[str, str]:
        """Return what a worker of this demo is told. Empty names of a Temporal and a store count as none."""
        return {
            WORLD_VARIABLE: str(self.world),
            HOLD_VARIABLE: str(self.hold),
            MODEL_VARIABLE: model or "",
            MCP_VARIABLE: "1" if mcp else "",
            "TEMPORAL_ADDRESS": "",
            "PERDURE_STORE_URL": "",
        }


@contextlib.contextmanager
def fresh_stage(home: Path, *, keep: bool) -> Iterator[Stage]:
    """Make the folder of a new demo (0700) under `home`, and remove those of earlier ones unless `keep`.

    A demo that is still running is left alone. The new folder stays when the context is left.
    """
    demos = home / "demo"
    try:
        for folder in (home, demos):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not keep:
            for earlier in demos.iterdir():
                _remove_if_over(earlier)
        stage = Stage(Path(tempfile.mkdtemp(prefix="run-", dir=demos)))
    except OSError as error:
        raise ConfigurationError("--home", f"{demos} cannot be used: {error}") from error
    with _locked(stage.folder):
        yield stage


@contextlib.contextmanager
def finished_stage(folder: Path) -> Iterator[Stage]:
    """Open the folder of a demo that is over; raises `ConfigurationError` when it is none, or still runs."""
    stage = Stage(folder.absolute())
    if not stage.notes.is_file():
        raise ConfigurationError("--judge", f"{folder} is not the folder of a finished demo; give the one it named")
    try:
        with _locked(stage.folder):
            yield stage
    except BlockingIOError as error:
        raise ConfigurationError("--judge", f"the demo in {folder} is still running; wait for its end") from error


def _remove_if_over(folder: Path) -> None:
    """Remove what an earlier demo left. Anything that is not a demo's is left alone."""
    if not (folder / _LOCK).is_file():
        return
    with contextlib.suppress(BlockingIOError), _locked(folder):
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; raises `BlockingIOError` while another process does."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
