"""Where things stand in a TOML text: the line of every key, table and element of an array.

The standard library's parser says what a text holds, and where only of what it refuses. So the text is gone through
once more for the places alone. It has been parsed by then: what is valid need not be checked here, only followed.
"""

import tomllib
from typing import Final

Path = tuple[str | int, ...]
"""Keys and places in arrays, from the top of the document."""

_BLANK: Final = " \t\r\n"
_ENDS_VALUE: Final = ",]}#\n"


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, counted from 1, at which each key, table and element of this valid TOML text begins."""
    return _Following(text).lines


class _Following:
    """The way through one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._arrays: dict[Path, int] = {}
        self.lines: dict[Path, int] = {}
        table: Path = ()
        while self._skip_blank():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        array = self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        path: Path = ()
        keys = self._keys()
        for place, key in enumerate(keys):
            path = (*path, key)
            if array and place == len(keys) - 1:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                self._note(path)
                path = (*path, self._arrays[path])
            self._note(path)
        self._at = self._text.index("]", self._at) + (2 if array else 1)
        return path

    def _pair(self, table: Path) -> None:
        path = table
        begins = self._at
        for key in self._keys():
            path = (*path, key)
            self._note(path, begins)
        self._at += 1  # the equals sign, at which the keys end
        self._value(path)

    def _keys(self) -> list[str]:
        """Read a dotted key, up to what follows it."""
        keys = []
        while True:
            self._skip_blank()
            keys.append(self._key())
            self._skip_blank()
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _key(self) -> str:
        begins = self._at
        if self._text[self._at] in "\"'":
            self._string()
            (key,) = tomllib.loads(f"{self._text[begins : self._at]} = 0")
            return key
        while self._text[self._at] not in "=.] \t":
            self._at += 1
        return self._text[begins : self._at]

    def _value(self, path: Path) -> None:
        self._skip_blank()
        match self._text[self._at]:
            case '"' | "'":
                self._string()
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case _:
                while self._at < len(self._text) and self._text[self._at] not in _ENDS_VALUE:
                    self._at += 1

    def _array(self, path: Path) -> None:
        self._at += 1
        place = 0
        while self._skip_blank() and self._text[self._at] != "]":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._note((*path, place))
            self._value((*path, place))
            place += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._skip_blank() and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
            else:
                self._pair(path)
        self._at += 1

    def _string(self) -> None:
        quote = self._text[self._at]
        triple = self._text.startswith(quote * 3, self._at)
        end = quote * 3 if triple else quote
        self._at += len(end)
        while not self._text.startswith(end, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(end)
        while triple and self._text.startswith(quote, self._at):  # up to two quotes may stand before the closing ones
            self._at += 1

    def _skip_blank(self) -> bool:
        """Go on to the next character that means something; say whether there is one."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                newline = self._text.find("\n", self._at)
                self._at = len(self._text) if newline < 0 else newline
            elif self._text[self._at] in _BLANK:
                self._at += 1
            else:
                return True
        return False

    def _note(self, path: Path, at: int | None = None) -> None:
        self.lines.setdefault(path, self._text.count("\n", 0, self._at if at is None else at) + 1)
