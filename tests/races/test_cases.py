"""The table of cases, checked both ways."""

import re

import pytest

from tests.races.cases import CASES
from tests.test_requirements import functions

NAMED = re.compile(r"test_([ab]\d+)_")


def test_every_race_has_a_row() -> None:
    assert {f"A{number}" for number in range(1, 22)} <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_every_row_names_tests_and_guards_that_exist(name: str) -> None:
    case = CASES[name]
    assert bool(case.tests) != bool(case.missing)
    assert case.guards or not name.startswith("A"), f"{name} was not shown to fail"
    assert not {*case.tests, *case.guards} - functions()


def test_every_test_that_names_a_case_stands_in_its_row() -> None:
    stray = []
    for test in sorted(functions()):
        path, _, function = test.partition("::")
        named = NAMED.match(function)
        if named and path.startswith("races/") and named[1].upper() in CASES:
            case = CASES[named[1].upper()]
            if test not in {*case.tests, *case.guards}:
                stray.append(test)
    assert not stray
