"""The world probe: a function of the user's that lists what the outside world saw, one item per applied effect.

It is the one witness that the harness has no part in: a call twice begun whose effect came once is fine, and only the
outside can tell. It runs in this process, before and after each run.
"""

import asyncio
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from perdure.cli.chaos.evidence import Applied
from perdure.core.errors import ConfigurationError

EXAMPLE = "module:function, as in shop.world:effects"
Probe = Callable[[], Any]
"""Returns, or awaits, a list of `{"key": …}` or `{"key": …, "tool": …}`, one per applied effect."""


def load_probe(reference: str, folder: Path) -> Probe:
    """Import the probe, the folder searched first; raises `ConfigurationError`."""
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ConfigurationError("--probe", f"{reference!r} names no function; write {EXAMPLE}")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except Exception as error:
        raise ConfigurationError(
            "--probe", f"importing module {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ConfigurationError("--probe", f"module {module_name!r} has no function {name!r}; write {EXAMPLE}")
    probe: Probe = found
    return probe


async def ask(probe: Probe) -> tuple[Applied, ...]:
    """Ask what the world has seen so far; raises `ConfigurationError` for a probe that fails or tells no keys."""
    try:
        told = await asyncio.to_thread(probe)
        if inspect.isawaitable(told):
            told = await _awaited(told)
    except Exception as error:
        raise ConfigurationError("--probe", f"it failed: {type(error).__name__}: {error}") from error
    if not isinstance(told, Iterable) or isinstance(told, str | bytes | Mapping):
        raise ConfigurationError("--probe", f"it returned a {type(told).__name__}; return a list, one item per effect")
    return tuple(_applied(item) for item in told)


async def _awaited(told: Awaitable[Any]) -> Any:
    return await told


def _applied(item: object) -> Applied:
    if not isinstance(item, Mapping) or not isinstance(item.get("key"), str) or not item["key"]:
        raise ConfigurationError("--probe", f'{item!r} has no text "key", the idempotency key that the call came with')
    tool = item.get("tool", "")
    if not isinstance(tool, str):
        raise ConfigurationError("--probe", f'{item!r}: "tool" is not a text; give the tool\'s name, or leave it out')
    return Applied(key=item["key"], tool=tool)


def since(before: tuple[Applied, ...], after: tuple[Applied, ...]) -> tuple[Applied, ...]:
    """Return what came between two answers; the world's order is kept."""
    known = Counter(before)
    new = []
    for applied in after:
        if known[applied]:
            known[applied] -= 1
        else:
            new.append(applied)
    return tuple(new)
