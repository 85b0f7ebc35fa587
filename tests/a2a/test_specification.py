"""The table of the specification's rows: each test of these modules names its section, and every row has a test.

Rows that need more than a served agent and a client are tested where what they need is. They are listed here, so that
the table is whole.
"""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = sorted(HERE.glob("test_specification_*.py"))
SECTION = re.compile(r"\b(3|4|5|8|9|10|11)\.\d+")

ELSEWHERE = {
    "3.1.1 a message may be the answer": "test_direct.py::test_a_plain_answer_is_a_message_that_names_its_task",
    "3.1.1 an accepted task is there before a worker is": (
        "test_served.py::test_a_message_that_was_accepted_is_there_at_once_and_runs_when_a_worker_comes"
    ),
    "3.1.1 a server killed while it accepts": (
        "test_served.py::test_a_server_killed_while_it_accepts_leaves_neither_ghost_nor_orphan"
    ),
    "3.1.7 to 3.1.10 push notifications": "test_push.py",
    "3.1.11, 13.3 an extended card for those who have come in": (
        "test_auth_keys.py::test_the_card_says_what_to_show_and_the_extended_one_more"
    ),
    "3.3.2, 13.1 another's task is as one that is not there": (
        "test_auth_owners.py::test_anothers_task_is_as_one_that_is_not_there"
    ),
    "3.1.4, 13.1 another's task is in no list": "test_auth_owners.py::test_no_list_has_it",
    "3.3.4 a required extension": "test_direct.py::test_an_extension_that_is_required_must_be_named",
    "3.4.3 referenced tasks inform": (
        "test_references.py::test_the_answer_of_a_finished_task_is_shown_beside_the_message_and_the_message_is_kept"
    ),
    "3.5.2 a client that never reads": "test_served.py::test_a_client_that_never_reads_holds_nobody_up",
    "3.7, 4.1.7 results are artifacts": "test_artifacts.py::test_a_tool_hands_over_data_and_files",
    "4.3 what is pushed": "test_push_delivery.py",
    "8.4 a signed card": "test_auth_card.py::test_both_cards_are_signed_and_a_changed_one_is_not",
}


def docstrings(module: Path) -> dict[str, str]:
    """Return the tests of a module with their docstrings."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(module.read_text(encoding="utf-8"))
    found = [each for each in tree.body if isinstance(each, functions) and each.name.startswith("test_")]
    return {each.name: ast.get_docstring(each) or "" for each in found}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_every_test_names_its_section(module: Path) -> None:
    silent = [name for name, text in docstrings(module).items() if not SECTION.match(text)]
    assert silent == []


@pytest.mark.parametrize("row", sorted(ELSEWHERE))
def test_every_row_has_its_test(row: str) -> None:
    file, _, name = ELSEWHERE[row].partition("::")
    found = docstrings(HERE / file)
    assert found
    assert not name or name in found
