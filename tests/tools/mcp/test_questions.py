"""A person's words as the answers that a server wants, and a server's questions as a person reads them."""

from typing import Any

import pytest
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
)

from perdure.core.artifacts import Asks
from perdure.core.errors import ToolError
from perdure.tools.mcp.questions import Answers, answered, asked

TEXT = {"reason": {"type": "string", "minLength": 3}}
NUMBER = {"count": {"type": "integer", "minimum": 1}}
SURE = {"sure": {"type": "boolean", "description": "Whether you are"}}
SIZE = {"size": {"type": "string", "enum": ["S", "M"]}}
MANY = {"tags": {"type": "array", "items": {"type": "string"}}}


def form(properties: dict[str, Any], message: str = "Tell me") -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def put(*requests: ElicitRequest, state: str | None = "s", so_far: Answers | None = None) -> Asks:
    given = InputRequiredResult(
        input_requests={f"q{number}": request for number, request in enumerate(requests)}, request_state=state
    )
    found = asked("shop.tool", given, so_far or Answers())
    assert isinstance(found, Asks)
    return found


@pytest.mark.parametrize(
    ("properties", "how", "choices"),
    [
        (TEXT, '(reason) Answer with a text; or "/decline".', ()),
        (NUMBER, '(count) Answer with a whole number; or "/decline".', ()),
        (SURE, '(Whether you are) Answer "yes" or "no"; or "decline".', ("yes", "no", "decline")),
        (SIZE, '(size) Answer one of: S, M; or "decline".', ("S", "M", "decline")),
        (TEXT | NUMBER, 'Answer with a JSON object (reason: a text, count: a whole number), or "/decline".', ()),
        ({}, 'Answer "yes" or "decline".', ("yes", "decline")),
    ],
)
def test_a_form_says_how_it_is_answered(properties: dict[str, Any], how: str, choices: tuple[str, ...]) -> None:
    asks = put(form(properties))
    assert (asks.question, asks.choices) == (f"shop.tool asks: Tell me {how}", choices)


@pytest.mark.parametrize(
    ("properties", "said", "content"),
    [
        (TEXT, " it broke ", {"reason": "it broke"}),
        (TEXT, '"123"', {"reason": "123"}),
        (TEXT, "1234", {"reason": "1234"}),
        (NUMBER, "3", {"count": 3}),
        (SURE, "Yes.", {"sure": True}),
        (SURE, "no", {"sure": False}),
        (SIZE, "M", {"size": "M"}),
        (MANY, "a, b", {"tags": ["a", "b"]}),
        (TEXT | NUMBER, '{"reason": "old", "count": 2}', {"reason": "old", "count": 2}),
        ({}, "ok", {}),
    ],
)
def test_words_become_what_a_field_is(properties: dict[str, Any], said: str, content: dict[str, Any]) -> None:
    told = answered("shop.tool", put(form(properties)).kept, said)
    assert isinstance(told, Answers)
    assert told.responses == {"q0": ElicitResult(action="accept", content=content)}
    assert told.state == "s"


@pytest.mark.parametrize("said", ["decline", "Decline.", "/decline"])
@pytest.mark.parametrize("properties", [TEXT, SURE, SIZE, MANY, TEXT | NUMBER, {}])
def test_a_person_may_refuse(properties: dict[str, Any], said: str) -> None:
    told = answered("shop.tool", put(form(properties)).kept, said)
    assert isinstance(told, Answers)
    assert told.responses == {"q0": ElicitResult(action="decline")}


WHAT = {"what": {"type": "string", "enum": ["ship", "cancel", "decline"]}}
TITLED = {"what": {"type": "string", "oneOf": [{"const": "cancel", "title": "Cancel it"}, {"const": "ship"}]}}
SEVERAL = {"what": {"type": "array", "items": {"type": "string", "enum": ["cancel", "decline"]}}}


@pytest.mark.parametrize(
    ("properties", "said", "content"),
    [
        (WHAT, "cancel", {"what": "cancel"}),
        (WHAT, "Cancel.", {"what": "cancel"}),
        (WHAT, "decline", {"what": "decline"}),
        (TITLED, "cancel", {"what": "cancel"}),
        (SEVERAL, "decline", {"what": ["decline"]}),
        (SEVERAL, "cancel, decline", {"what": ["cancel", "decline"]}),
        (TEXT, '"Cancel."', {"reason": "Cancel."}),
        (TEXT, '"decline"', {"reason": "decline"}),
        (TEXT, "cancel the order", {"reason": "cancel the order"}),
        ({"n": {"type": "integer", "enum": [1, 2]}}, "2", {"n": 2}),
    ],
)
def test_a_value_that_is_offered_is_delivered_whatever_word_it_is(
    properties: dict[str, Any], said: str, content: dict[str, Any]
) -> None:
    told = answered("shop.tool", put(form(properties)).kept, said)
    assert isinstance(told, Answers)
    assert told.responses == {"q0": ElicitResult(action="accept", content=content)}


@pytest.mark.parametrize("properties", [WHAT, SEVERAL])
def test_who_refuses_where_decline_is_a_value_says_it_in_another_word(properties: dict[str, Any]) -> None:
    asks = put(form(properties))
    assert asks.question.endswith('; or "/decline".')
    assert asks.choices in {(), ("ship", "cancel", "decline", "/decline")}
    told = answered("shop.tool", asks.kept, "/decline")
    assert isinstance(told, Answers)
    assert told.responses == {"q0": ElicitResult(action="decline")}


@pytest.mark.parametrize("properties", [TEXT, NUMBER, SURE, SIZE, MANY, TEXT | NUMBER, {}])
def test_cancel_is_no_answer_where_it_is_not_offered(properties: dict[str, Any]) -> None:
    again = answered("shop.tool", put(form(properties)).kept, "Cancel.")
    assert isinstance(again, Asks)
    assert again.question.startswith("That does not fit: ")


@pytest.mark.parametrize(
    ("properties", "said", "why"),
    [
        (TEXT, "x", "is too short"),
        (NUMBER, "many", "count: must be integer"),
        (NUMBER, "0", "count: 0 is less than the minimum"),
        (SURE, "perhaps", "sure: must be boolean"),
        (SIZE, "XL", 'size: must be one of "S", "M", got "XL"'),
        (TEXT | NUMBER, "because", "give a JSON object with reason, count"),
        ({}, "perhaps", 'answer "yes" or "decline"'),
    ],
)
def test_what_does_not_fit_is_asked_for_again(properties: dict[str, Any], said: str, why: str) -> None:
    first = put(form(properties))
    again = answered("shop.tool", first.kept, said)
    assert isinstance(again, Asks)
    assert again.question.startswith("That does not fit: ")
    assert why in again.question
    assert again.kept == first.kept


def test_questions_are_put_one_at_a_time_and_answered_together() -> None:
    first = put(form(TEXT, "Why?"), form(NUMBER, "How many?"))
    second = answered("shop.tool", first.kept, "it broke")
    assert isinstance(second, Asks)
    assert "How many?" in second.question
    told = answered("shop.tool", second.kept, "2")
    assert isinstance(told, Answers)
    assert told.responses is not None
    assert list(told.responses) == ["q0", "q1"]


def test_a_call_that_is_begun_anew_asks_a_person_only_what_is_new() -> None:
    told = answered("shop.tool", put(form(TEXT, "Why?")).kept, "it broke")
    assert isinstance(told, Answers)
    anew = Answers(said=told.said, again=True)
    given = InputRequiredResult(input_requests={"again": form(TEXT, "Why?")}, request_state="s2")
    filled = asked("shop.tool", given, anew)
    assert isinstance(filled, Answers)
    assert filled.responses == {"again": ElicitResult(action="accept", content={"reason": "it broke"})}
    assert filled.state == "s2"
    both = put(form(TEXT, "Why?"), form(NUMBER, "How many?"), so_far=anew)
    assert "How many?" in both.question
    assert "Why?" in put(form(TEXT, "Why?"), so_far=Answers(said=told.said)).question, "asked on purpose once more"


def test_an_address_to_go_to_is_shown_and_waited_for() -> None:
    asks = put(ElicitRequest(params=ElicitRequestURLParams(message="Pay first.", url="https://pay.example/1")))
    assert asks.question == (
        'shop.tool asks: Pay first. Go to https://pay.example/1 and answer "done" afterwards, or "decline".'
    )
    told = answered("shop.tool", asks.kept, "done")
    assert isinstance(told, Answers)
    assert told.responses == {"q0": ElicitResult(action="accept")}
    assert isinstance(answered("shop.tool", asks.kept, "what?"), Asks)


def test_what_nobody_here_answers_ends_the_call() -> None:
    given = InputRequiredResult(input_requests={"r": ListRootsRequest()})
    with pytest.raises(ToolError, match="asks for roots/list, and nobody here answers that"):
        asked("shop.tool", given, Answers())
