"""The table of requirements, checked both ways."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parent
NUMBERED = re.compile(r"test_([pr]\d+)_")


@cache
def functions() -> frozenset[str]:
    """Return every test as `path::function`."""
    found = set()
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add(f"{path.relative_to(TESTS)}::{node.name}")
    return frozenset(found)


def test_every_promise_and_rule_has_a_row() -> None:
    assert list(REQUIREMENTS) == [f"P{i}" for i in range(1, 12)] + [f"R{i}" for i in range(1, 16)]


@pytest.mark.parametrize("number", REQUIREMENTS)
def test_every_row_names_tests_that_exist(number: str) -> None:
    row = REQUIREMENTS[number]
    assert row.tests, f"{number} is proved by nothing"
    assert not set(row.tests) - functions()
    assert len(set(row.tests)) == len(row.tests)


def test_every_numbered_test_stands_in_its_row() -> None:
    stray = [
        test
        for test in functions()
        if (match := NUMBERED.match(test.partition("::")[2])) and test not in REQUIREMENTS[match[1].upper()].tests
    ]
    assert not stray
