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
    try:
        module = imported(module_name, reference, folder)
    except ConfigurationError as error:
        beside = nearest(module_name, (file.stem for file in folder.glob("*.py")))
        missing = isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == module_name
        raise ConfigurationError(error.field, error.problem + (beside if missing else "")) from error
    if not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        raise ConfigurationError("AGENT", f"module {module_name!r} has no {name!r}{nearest(name, known)}")
    found: object = getattr(module, name)
    return found
