"""Loading an agent from `module:attribute` or a TOML file, in a process that only wants to know it.

A module that acts when it is imported (runs an event loop, opens an app, exits) would act in every worker process; it
is refused with a text that says so.
"""

import asyncio
import importlib
import sys
from contextvars import ContextVar
from pathlib import Path

from perdure.app.agent import Agent
from perdure.core.errors import ConfigurationError

importing: ContextVar[str | None] = ContextVar("importing", default=None)
"""The reference whose module is being imported; `open_app` refuses to run meanwhile."""

EXAMPLE = "module:agent, as in shop.agents:support, or a TOML file, as in shop.toml"


_LOOP_IN_LOOP = ("running event loop", "another loop is running")
"""What asyncio says to whoever starts a loop within a loop."""


def load_agent(reference: str) -> Agent:
    """Import the module and return its agent; the current folder is searched first. What ends in `.toml` is a file.

    Raises `ConfigurationError` when the reference is malformed, the module cannot be imported or acts on import, or
    the attribute is missing or no `Agent`, and for everything that is wrong with a file (`AgentFileError`).
    """
    if reference.endswith(".toml"):
        from perdure.app.agent_file import load_agent_file  # noqa: PLC0415 - it imports what files name with this module

        return load_agent_file(reference)
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise ConfigurationError("AGENT", f"{reference!r} does not name an agent; write {EXAMPLE}")
    found = getattr(imported(module_name, reference), attribute, None)
    if found is None:
        raise ConfigurationError("AGENT", f"module {module_name!r} has no {attribute!r}; write {EXAMPLE}")
    if not isinstance(found, Agent):
        raise ConfigurationError("AGENT", f"{reference} is a {type(found).__name__}, not a perdure.Agent")
    return found


def imported(module_name: str, reference: str, folder: Path | None = None) -> object:
    """Import a user's module, found in `folder` first and then in the current one.

    Raises `ConfigurationError` when there is none of that name, it cannot be imported, or it acts on import.
    """
    for first in (Path.cwd(), *(() if folder is None else (folder,))):
        if str(first) not in sys.path:
            sys.path.insert(0, str(first))
    token = importing.set(reference)
    try:
        return _import(module_name)
    except ConfigurationError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ConfigurationError("AGENT", f"there is no module {module_name!r} here or on the path") from error
        raise ConfigurationError("AGENT", f"module {module_name!r} needs {error.name!r}, which is missing") from error
    except SystemExit as error:
        raise ConfigurationError("AGENT", acts_on_import(module_name, "it exits")) from error
    except Exception as error:
        if isinstance(error, RuntimeError) and any(words in str(error) for words in _LOOP_IN_LOOP):
            raise ConfigurationError("AGENT", acts_on_import(module_name, "it runs an event loop")) from error
        raise ConfigurationError(
            "AGENT", f"importing module {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error
    finally:
        importing.reset(token)


def _import(module_name: str) -> object:
    """Import within a running event loop, so that a module that runs one of its own fails instead of acting."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_import_in_loop(module_name))
    return importlib.import_module(module_name)


async def _import_in_loop(module_name: str) -> object:
    return importlib.import_module(module_name)


def acts_on_import(module_name: str, what: str) -> str:
    """Return the text that tells an author to move actions out of a module's top level."""
    return (
        f"module {module_name!r} acts when it is imported ({what}), and every worker imports it; "
        f'move that under `if __name__ == "__main__":`'
    )


def refuse_while_importing(what: str) -> None:
    """Raise when a user's module is being imported: it must not act then."""
    reference = importing.get()
    if reference is not None:
        raise ConfigurationError("AGENT", acts_on_import(reference.partition(":")[0], what))
