"""Faults in a worker: the hook that kills its own process at a named point, armed from the environment.

`PERDURE_FAULT` names the points (`core/faults.py`), as in `tool.begun`, `tool.begun:refund` or `model.inside@3`.
Every process that is started with it counts and dies on its own. With `PERDURE_FAULT_ONCE=<path>` each fault kills
once over all processes: the one that dies creates the file first, and one that finds it lives on. With several faults
each has a file of its own, `<path>.1`, `<path>.2`… in their order.

Only tests and `chaos` set these. A worker that has them says so in its log.
"""

import contextlib
import json
import logging
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

from perdure.core.errors import ConfigurationError
from perdure.core.faults import FIELD, Fault, install, read_faults, remove

ONCE = "PERDURE_FAULT_ONCE"
"""The environment variable that makes each fault happen once over all processes."""

_log = logging.getLogger(__name__)


def once_paths(once: Path, faults: tuple[Fault, ...]) -> tuple[Path, ...]:
    """Return the file of each fault, in order: it exists as soon as that fault has killed."""
    if len(faults) == 1:
        return (once,)
    return tuple(once.with_name(f"{once.name}.{place}") for place in range(1, len(faults) + 1))


class Killer:
    """The hook: counts what is reached, and kills this process when a fault's time has come.

    Uses nothing that a workflow's sandbox watches: it is called there, too.
    """

    def __init__(self, faults: tuple[Fault, ...], once: Path | None) -> None:
        paths: tuple[Path | None, ...] = (None,) * len(faults) if once is None else once_paths(once, faults)
        self._armed = [(fault, None if path is None else str(path)) for fault, path in zip(faults, paths, strict=True)]
        self._reached = [0] * len(faults)

    def __call__(self, point: str, concerns: tuple[str, ...]) -> None:
        """Take note of a point; does not return where the process dies."""
        for place, (fault, path) in enumerate(self._armed):
            if not fault.matches(point, concerns):
                continue
            self._reached[place] += 1
            if self._reached[place] == fault.nth and (path is None or _claimed(path, fault)):
                os.kill(os.getpid(), signal.SIGKILL)


def _claimed(path: str, fault: Fault) -> bool:
    """Create the fault's file; False when another process did."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(file, json.dumps({"fault": str(fault), "pid": os.getpid()}).encode())
    finally:
        os.close(file)
    return True


@contextlib.contextmanager
def armed(environment: Mapping[str, str]) -> Iterator[None]:
    """Arm what the environment names while the context is open; nothing, where it names nothing.

    Raises `ConfigurationError` for a point that does not exist, and for a file whose folder does not.
    """
    faults = read_faults(environment.get(FIELD, ""))
    if not faults:
        yield
        return
    once = Path(environment[ONCE]) if environment.get(ONCE) else None
    if once is not None and not once.parent.is_dir():
        raise ConfigurationError(ONCE, f"{once.parent} is no folder; name a file in one that exists")
    _log.warning("%s: this process kills itself at %s", FIELD, ", ".join(map(str, faults)))
    killer = Killer(faults, once)
    install(killer)
    try:
        yield
    finally:
        remove(killer)
