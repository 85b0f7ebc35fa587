"""`tool(ask=…)`, and how `ask_participant` may ask: what cannot work is refused where it is written."""

from typing import Any

import pytest

from perdure import tool
from perdure.core.errors import ConfigurationError, InvalidInput
from perdure.core.questions import Manner
from perdure.tools import manner_of


def pay(amount: float, currency: str = "EUR") -> str:
    """Pay."""
    return f"{amount} {currency}"


@pytest.mark.parametrize(("ask", "kept"), [("amount > 100 ", "amount > 100"), (True, "True"), (False, "")])
def test_a_condition_stands_in_the_spec_of_its_tool(ask: str | bool, kept: str) -> None:
    assert tool(ask=ask)(pay).spec.ask == kept


def test_without_one_nothing_shows_of_it() -> None:
    assert "ask" not in tool(pay).spec.model_dump()


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        ("amuont > 100", r"tool 'pay', ask: .*'amuont' is no argument of it; its arguments: amount, currency"),
        ("amount >", "tool 'pay', ask: .*is no expression"),
        ("amount * 2 > 100", r"tool 'pay', ask: .*is not allowed"),
        (" ", "tool 'pay', ask: ' ' is no condition"),
    ],
)
def test_what_is_no_condition_over_its_arguments_is_refused(ask: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        tool(ask=ask)(pay)


def test_how_a_question_is_put() -> None:
    assert manner_of({"question": "?"}, None) is None
    assert manner_of({"question": "?"}, 60) == Manner(expires_in_s=60)
    assert manner_of({"question": "?", "expires_in_s": 5}, 60) == Manner(expires_in_s=5)
    assert manner_of({"choices": ["  the  red one", "blue"]}, None) == Manner(choices=("the red one", "blue"))
    form: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert manner_of({"form": form}, None) == Manner(form=form)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"choices": "red"}, "ask_participant.choices: must be a list of texts"),
        ({"choices": ["red", " "]}, "ask_participant.choices: must be a list of texts"),
        ({"choices": ["Red", "red"]}, "ask_participant.choices: two of them are the same"),
        ({"choices": ["x" * 201, "y"]}, "ask_participant.choices: may be 50 texts of 200 characters"),
        ({"choices": ["a", "b"], "form": {}}, "ask_participant.form: there are choices too"),
        ({"form": "{}"}, "ask_participant.form: must be a JSON schema"),
        ({"form": {"type": "object"}}, "ask_participant.form: must be"),
        ({"expires_in_s": 0}, "ask_participant.expires_in_s: must be 1 to"),
        ({"expires_in_s": True}, "ask_participant.expires_in_s: must be 1 to"),
        ({"expires_in_s": "soon"}, "ask_participant.expires_in_s: must be 1 to"),
        ({"expires_in_s": 1e12}, "ask_participant.expires_in_s: must be 1 to"),
    ],
)
def test_how_a_question_cannot_be_put(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        manner_of(arguments, None)
    assert str(refused.value).startswith(problem)
