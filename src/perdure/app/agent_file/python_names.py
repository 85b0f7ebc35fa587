"""Objects in Python that an agent file names: `module:name`, the module found beside the file first."""

import re
from pathlib import Path
from typing import Final

from perdure.app.agent_file.wording import nearest
from perdure.app.loading import imported
from perdure.core.errors import ConfigurationError

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

EXAMPLE: Final = "module:name, as in shop_tools:get_order"


def is_reference(text: str) -> bool:
    """Whether this is written as `module:name` is."""
    return _REFERENCE.fullmatch(text) is not None


def find(reference: str, folder: Path) -> object:
    """Import the module and return what it has under that name.

    Raises `ConfigurationError` for a malformed reference, a module that cannot be imported, and a name that is missing.
    """
    if not is_reference(reference):
        raise ConfigurationError("AGENT", f"{reference!r} names nothing in Python; write {EXAMPLE}")
    module_name, _, name = reference.partition(":")
    module = imported(module_name, reference, folder)
    if not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        raise ConfigurationError("AGENT", f"module {module_name!r} has no {name!r}{nearest(name, known)}")
    found: object = getattr(module, name)
    return found
