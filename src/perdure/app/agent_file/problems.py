"""What is wrong with an agent file: each problem with its place and its fix, and the error that carries them all."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from perdure.app.agent_file.lines import Path
from perdure.core.errors import ConfigurationError

MadeT = TypeVar("MadeT")

_LAST_WORD: Final = re.compile(r"[a-z_]+")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `line` counts from 1 (0: of none), `key` is where in the file's tables it stands."""

    file: str
    line: int
    key: str
    text: str

    @property
    def place(self) -> str:
        """File, line and key, as an editor takes the first two."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key}" if self.key else where

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class AgentFileError(ConfigurationError):
    """An agent file that cannot work: all that was found, in the order of the file, one a line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first, *others = sorted(problems, key=lambda problem: problem.line)
        super().__init__(first.place, "\n".join((first.text, *map(str, others))))
        self.problems = (first, *others)


class Places:
    """One file's places, and the problems that were found at them."""

    def __init__(self, file: str, lines: Mapping[Path, int]) -> None:
        self._file = file
        self._lines = lines
        self.found: list[Problem] = []

    def refuse(self, path: Path, text: str) -> None:
        """Note a problem at a key; one key has one problem."""
        problem = self.at(path, text)
        if all(problem.key != other.key for other in self.found):
            self.found.append(problem)

    def at(self, path: Path, text: str) -> Problem:
        """Return a problem at a key, or where it would stand: at the table that lacks it."""
        end = next((end for end in range(len(path), 0, -1) if path[:end] in self._lines), 0)
        return Problem(self._file, self._lines.get(path[:end], 1), key_text(path), text)

    def tried(self, path: Path, make: Callable[[], MadeT], keys: Collection[str] = ()) -> MadeT | None:
        """Make something; what that refuses is a problem here, at one of these `keys` where it names one."""
        try:
            return make()
        except ConfigurationError as error:
            key = _LAST_WORD.findall(error.field)[-1:]
            named = key if key and key[0] in keys else []
            self.refuse((*path, *named), error.problem if named or not keys else str(error))
        return None

    def raise_found(self) -> None:
        """Raise what was found, if anything was."""
        if self.found:
            raise AgentFileError(self.found)


def key_text(path: Path) -> str:
    """Return a path as TOML writes it, with places in arrays counted from 1: `mcp.orders."get_*".effect`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key + 1}]"
            continue
        plain = key.replace("-", "").replace("_", "")
        shown = key if plain.isascii() and plain.isalnum() else json.dumps(key, ensure_ascii=False)
        text += f".{shown}" if text else shown
    return text
