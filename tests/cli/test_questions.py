"""What a person types, and what the task is given for it."""

import json
from typing import Any

import pytest

from perdure.cli.questions import Question, answer_to
from perdure.core.errors import InvalidInput

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"enum": ["S", "M", 1]},
        "count": {"type": "integer"},
        "gift": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["size", "count"],
}
FILLED = Question("h", "How many?", form=FORM)
CHOSEN = Question("h", "Which?", choices=("red", "blue", "3"))
ASKED = Question("h", "May it run?", choices=("approve", "decline"), digest="d")


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("y", {"approve": True, "digest": "d"}),
        ("Yes: they are nice", {"approve": True, "digest": "d", "reason": "they are nice"}),
        ("approve", {"approve": True, "digest": "d"}),
        ("n", {"approve": False, "reason": ""}),
        ("no not without a receipt", {"approve": False, "reason": "not without a receipt"}),
        ("decline: too much", {"approve": False, "reason": "too much"}),
        ('e {"amount": 50}', {"approve": True, "digest": "d", "arguments": {"amount": 50}}),
    ],
)
def test_a_call_that_waits_takes_yes_no_and_other_arguments(typed: str, given: dict[str, Any]) -> None:
    assert json.loads(answer_to(ASKED, typed)) == given


def test_what_is_not_understood_goes_to_the_task_which_says_what_it_takes() -> None:
    assert answer_to(ASKED, "hm, well") == "hm, well"
    assert answer_to(CHOSEN, "green") == "green"
    assert answer_to(FILLED, "two, please") == "two, please"
    with pytest.raises(InvalidInput, match="edit: give all arguments"):
        answer_to(ASKED, "edit amount=50")


def test_a_choice_is_given_by_its_number_or_its_words() -> None:
    assert [answer_to(CHOSEN, typed) for typed in ("1", "blue", "3", "9")] == ["red", "blue", "3", "9"]
    assert CHOSEN.how == "[1] red, [2] blue, [3] 3"


def test_a_form_is_given_field_by_field_or_as_an_object() -> None:
    assert FILLED.how == "size=S|M|1 count=… [gift=true|false] [note=…], or a JSON object"
    typed = 'size=S count=2 gift=true note="two words"'
    assert json.loads(answer_to(FILLED, typed)) == {"size": "S", "count": 2, "gift": True, "note": "two words"}
    assert json.loads(answer_to(FILLED, "size=1 count=many note=7")) == {"size": 1, "count": "many", "note": "7"}
    assert answer_to(FILLED, '{"size": "S"}') == '{"size": "S"}'
    with pytest.raises(InvalidInput, match=r"'two' is no name=value; the fields: size=S"):
        answer_to(FILLED, "size=S two")
    with pytest.raises(InvalidInput, match="with quotes around a value"):
        answer_to(FILLED, 'size=S note="two')


def test_a_question_is_read_from_its_event() -> None:
    data: dict[str, Any] = {"help_id": "t/1/0", "text": "?", "help_kind": "approval", "call_digest": "d"}
    assert Question.of(data | {"choices": ["approve", "decline"]}) == Question(
        "t/1/0", "?", ("approve", "decline"), None, "d"
    )
    assert Question.of({"help_id": "h", "schema": FORM}, "Fill in.") == Question("h", "Fill in.", form=FORM)
