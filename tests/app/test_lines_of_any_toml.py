"""Whatever a TOML text holds, in whatever form it is written, each of its keys has the line at which it stands."""

import json
import tomllib
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.app.agent_file.lines import Path, lines_of

KEYS = ("a", "b-c", "d_1", "e f", "", "é", 'q"q', "x.y", "#", "[t]", "=")
TEXTS = ("", "plain", "a # b", 'q"', "it's", "]", "}", "= 1", "back\\slash", "tab\t", "é")


class Writer:
    """Writes one random document and notes where it put each key."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.text = ""
        self.lines: dict[Path, int] = {}
        self.table((), depth=0)

    def one(self, *choices: Any) -> Any:
        return choices[self.chance.randrange(len(choices))]

    def put(self, text: str) -> None:
        self.text += text

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def keys(self) -> list[str]:
        return self.chance.sample(KEYS, self.one(0, 1, 2, 3))

    def table(self, above: Path, depth: int) -> None:
        """Write the pairs of a table, then the tables in it."""
        keys = self.keys()
        for key in keys:
            self.blank()
            self.pair(above, key, depth)
            self.put(self.one("", " ", " # a = 1") + self.one("\n", "\r\n"))
        for key in self.keys() if depth < 2 else ():
            if key not in keys:
                self.header((*above, key), depth)

    def header(self, path: Path, depth: int) -> None:
        self.blank()
        array = self.one(True, False, False)
        for place in range(self.one(1, 2) if array else 1):
            inside = (*path, place) if array else path
            for end in range(1, len(path) + 1):
                self.note(path[:end])
            self.note(inside)
            name = self.one(".", " . ").join(self.key(each) for each in path if isinstance(each, str))
            self.put(f"[[{name}]]\n" if array else f"[ {name} ] # [x]\n")
            self.table(inside, 2 if array else depth + 1)

    def blank(self) -> None:
        self.put(self.one("", "", "\n", "# x = 1 [y]\n", "  \n"))

    def key(self, key: str) -> str:
        plain = (
            key != ""
            and key.replace("-", "").replace("_", "").isascii()
            and key.replace("-", "").replace("_", "").isalnum()
        )
        forms = [json.dumps(key, ensure_ascii=False)]
        forms += [key] if plain else []
        forms += [f"'{key}'"] if "'" not in key else []
        return str(self.one(*forms))

    def pair(self, above: Path, key: str, depth: int) -> None:
        path = (*above, key)
        self.note(path)
        self.put(self.key(key))
        if self.one(True, False, False):
            path = (*path, "inner")
            self.note(path)
            self.put(self.one(".", " . ") + "inner")
        self.put(self.one("=", " = "))
        self.value(path, depth)

    def value(self, path: Path, depth: int) -> None:
        match self.one("text", "text", "number", "array", "inline") if depth < 3 else "number":
            case "text":
                self.put(self.string(self.one(*TEXTS)))
            case "number":
                self.put(self.one("1", "-2.5e3", "true", "inf", "2020-01-01T00:00:00Z", "2020-01-01 00:00:00", "0xff"))
            case "array":
                self.put("[")
                for place in range(self.one(0, 1, 3)):
                    self.put(self.one("", " ", "\n", " # ] \n"))
                    self.note((*path, place))
                    self.value((*path, place), depth + 1)
                    self.put(self.one(",", " ,", ",\n"))
                self.put(self.one("]", "\n]"))
            case _:
                self.put("{ ")
                for number, key in enumerate(self.keys()):
                    self.put(", " if number else "")
                    self.pair(path, key, depth + 1)
                self.put(" }")

    def string(self, text: str) -> str:
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        forms = [f'"{escaped}"', f'"""{escaped}"""', f'"""\n{escaped}\n"""']
        if "'" not in text and "\t" not in text:
            forms += [f"'{text}'", f"'''{text}'''", f"'''\n{text}''\n'''"]
        return str(self.one(*forms))


def paths(value: object, above: Path = ()) -> set[Path]:
    found = {above} if above else set()
    if isinstance(value, dict):
        for key, inside in value.items():
            found |= paths(inside, (*above, key))
    elif isinstance(value, list):
        for place, inside in enumerate(value):
            found |= paths(inside, (*above, place))
    return found


def check(text: str, lines: dict[Path, int]) -> None:
    found = lines_of(text)
    assert found == lines
    assert paths(tomllib.loads(text)) == found.keys()


@settings(max_examples=300, deadline=None, database=None)
@given(st.randoms(use_true_random=False))
def test_each_key_is_found_where_it_was_written(chance: Random) -> None:
    written = Writer(chance)
    check(written.text, written.lines)


@pytest.mark.parametrize("shard", range(4))
def test_so_it_is_in_larger_texts(shard: int) -> None:
    for seed in range(shard, 2_000, 4):
        written = Writer(Random(seed))
        try:
            check(written.text, written.lines)
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{written.text}") from error
