"""What an agent file names and does not hold: files and Python modules, found in its own folder first."""

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel

from perdure.app.agent_file.lines import Path
from perdure.app.agent_file.problems import Places
from perdure.app.agent_file.python_names import find
from perdure.app.agent_file.wording import as_in, nearest


class Beside:
    """The folder of one agent file; what is not there is a problem at the key that names it."""

    def __init__(self, folder: FilePath, places: Places) -> None:
        self.folder = folder
        self.places = places

    def file(self, path: Path, name: str) -> FilePath | None:
        """Return a file that is there."""
        file = self.folder / name
        if file.is_file():
            return file
        others = (each.name for each in file.parent.iterdir()) if file.parent.is_dir() else ()
        self.places.refuse(path, f"there is no file {file}{nearest(file.name, others) or as_in(path)}")
        return None

    def text(self, path: Path, name: str) -> str:
        """Return the text of a file that is there, empty where it is not."""
        file = self.file(path, name)
        try:
            return "" if file is None else file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.places.refuse(path, f"{file} is not UTF-8 at byte {error.start}; save it as UTF-8")
        except OSError as error:
            self.places.refuse(path, f"{file} cannot be read: {error.strerror}")
        return ""

    def find(self, path: Path, reference: str, refuse: Callable[[str, Any], None]) -> Any:
        """Return an object in Python, None where there is none; `refuse` raises for what is of the wrong kind."""

        def found() -> Any:
            value = find(reference, self.folder)
            refuse(reference, value)
            return value

        return self.places.tried(path, found)

    def has_module(self, name: str) -> bool:
        """Whether a module of this name stands beside the file."""
        return (self.folder / f"{name.replace('.', '/')}.py").is_file()


def stated(form: BaseModel, *keys: str) -> dict[str, Any]:
    """Return what the file says, by key, without what it leaves out."""
    return {key: getattr(form, key) for key in keys if getattr(form, key) is not None}
