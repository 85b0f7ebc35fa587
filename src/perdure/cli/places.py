"""Where a command finds and keeps things: the data folder, the workers' log, the agents that were run from here."""

import json
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from perdure.app.settings import Settings
from perdure.core import fleet_limits
from perdure.core.errors import ConfigurationError
from perdure.core.ports import Store
from perdure.store import open_store

SQLITE = "sqlite:///"


def data_folder(settings: Settings) -> Path:
    """Return the data folder, made (0700) when it is missing; raises `ConfigurationError` when it cannot be."""
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            "PERDURE_HOME", f"{settings.home} cannot be used as the data folder: {error.strerror}; name another"
        ) from error
    return settings.home


def worker_log(settings: Settings) -> Path:
    """Return the file that workers' output goes to, 0600; a log that has grown long is put aside first."""
    path = data_folder(settings) / "worker.log"
    try:
        if path.exists() and path.stat().st_size > fleet_limits.WORKER_LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.fchmod(file, 0o600)
        os.close(file)
    except OSError as error:
        raise ConfigurationError("PERDURE_HOME", f"{path} cannot be written: {error.strerror}") from error
    return path


@asynccontextmanager
async def existing_store(settings: Settings) -> AsyncIterator[Store | None]:
    """Open the store to read it; None when there is none: asking must not make one."""
    if _is_missing_file(settings.store_url):
        yield None
        return
    store = await open_store(settings.store_url)
    try:
        yield store
    finally:
        await store.close()


def _is_missing_file(url: str) -> bool:
    return url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).exists()


def command(context: typer.Context, *words: str) -> str:
    """Return a `perdure` command for a person to copy, over the same data folder as this one."""
    home = context.find_root().params.get("home")
    return shlex.join(["perdure", *(("--home", home) if home else ()), *words])


# --- which module an agent came from ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """Where an agent was loaded from: its reference, and the folder that it was found from."""

    reference: str
    folder: Path


def remember(settings: Settings, agent_id: str, origin: Origin) -> None:
    """Keep where the agent came from, so that its tasks can be gone on with by their id alone."""
    path = _origin_path(settings, agent_id)
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial.write_text(json.dumps({"reference": origin.reference, "folder": str(origin.folder)}))
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError("PERDURE_HOME", f"{path} cannot be written: {error.strerror}") from error


def origin_of(settings: Settings, agent_id: str) -> Origin | None:
    """Return where the agent came from when it last ran over this data folder, or None."""
    try:
        said = json.loads(_origin_path(settings, agent_id).read_text())
        return Origin(str(said["reference"]), Path(said["folder"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _origin_path(settings: Settings, agent_id: str) -> Path:
    return settings.home / "agents" / f"{agent_id}.json"
