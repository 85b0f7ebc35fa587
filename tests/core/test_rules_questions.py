"""Questions with choices, with a form, with an expiry: a wrong answer is refused with its place, and stays open."""

from typing import Any

import pytest

from perdure.core.errors import InvalidInput
from tests.core.task import Task, ask, asking
from tests.core.test_rules_calls import calling

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["S", "M", "L"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "gift": {"type": "boolean"},
    },
    "required": ["size", "count"],
}


def refused(task: Task, said: str, problem: str) -> None:
    before = task.state
    with pytest.raises(InvalidInput) as error:
        task.answer(said)
    assert problem in str(error.value)
    assert task.state == before
    assert task.status == "input_required"


def test_a_question_with_choices_takes_one_of_them() -> None:
    task = calling(ask("Which?", choices=("the red one", "the blue one")))
    assert task.rows("help.requested")[0].data["choices"] == ["the red one", "the blue one"]
    refused(task, "green", 'text: \'green\' is none of the answers: "the red one", "the blue one"')
    task.answer("  The RED  one ")
    assert task.transcript[2:] == ["ok: the red one"]


def test_a_form_is_held_to_its_schema_with_every_place_that_is_wrong() -> None:
    task = calling(ask("How many?", form=FORM))
    assert task.rows("help.requested")[0].data["schema"] == FORM
    refused(task, "two", "text: is not JSON; answer with a JSON object of size, count, gift (optional)")
    refused(task, "[2]", "text: is no JSON object")
    refused(
        task, '{"size": "XL", "count": 0}', 'size: must be one of "S", "M", "L", got "XL"; count: must be at least 1'
    )
    refused(task, '{"size": "S"}', "count: missing")
    refused(task, '{"size": "S", "count": 1, "colour": "red"}', "colour: unknown")
    refused(task, '{"size": "S", "count": "1"}', 'count: must be an integer, got "1"')
    task.answer('{"count": 2, "size": "S"}')
    assert task.transcript[2:] == ['ok: {"count":2,"size":"S"}']
    assert task.rows("help.answered")[0].data["text"] == '{"count":2,"size":"S"}'


def test_a_question_that_nobody_answers_in_time_is_closed_and_the_model_is_told() -> None:
    task = calling(ask("Which?", expires_in_s=60), ask("And then?"))
    assert list(task.expiries) == ["t/1/0"]
    asked = task.rows("help.requested")[0]
    assert asked.data["expires_at_ms"] == asked.at_ms + 60_000
    task.restart()
    task.expire()
    assert [h.help_id for h in task.state.help] == ["t/1/1"]
    task.answer("then")
    assert task.transcript[2:] == [
        "not_begun: Not answered: nobody answered in time. Go on without the answer, or ask again.",
        "ok: then",
    ]
    assert task.model.turn == 2


def test_p8_without_an_expiry_nothing_waits_but_the_person() -> None:
    task = calling(ask("Which?"))
    assert (task.flights, task.waits, task.expiries) == ({}, {}, {})


def test_a_late_answer_and_a_second_one_are_refused_and_say_why() -> None:
    task = calling(ask("Which?", expires_in_s=60), ask("And then?"))
    task.expire()
    with pytest.raises(
        InvalidInput, match=r"'t/1/0' is not an open question of this task any more: .* open ones: t/1/1"
    ):
        task.answer("late", "t/1/0")
    task.answer("then")
    with pytest.raises(InvalidInput, match="any more"):
        task.answer("again", "t/1/1")
    with pytest.raises(InvalidInput, match="'t/7/0' is not an open question of this task; open ones: none"):
        task.answer("what?", "t/7/0")


def test_an_answer_and_an_expiry_in_one_moment_are_one_outcome() -> None:
    task = calling(ask("Which?", expires_in_s=60))
    waited = dict(task.expiries)
    task.answer("this one")
    task.expiries.update(waited)
    before = task.state
    task.expire()
    assert task.state == before


def test_a_stopped_run_closes_its_questions_and_stops_their_waits() -> None:
    task = calling(ask("Which?", expires_in_s=60), "get_order")
    task.stop()
    assert task.expiries == {}
    task.tool_fails(1, "cancelled")
    assert task.rows("help.closed")[0].data["reason"] == "stopped"


def test_who_answered_is_recorded() -> None:
    task = calling(ask("Which?"))
    task.answer("this one", by="alice")
    assert task.rows("help.answered")[0].data["by"] == "alice"


def test_a_task_that_waits_for_another_answer_says_for_which() -> None:
    """Its status shows the question that is open, not the one that expired before it."""
    task = calling(asking("refund", expires_in_s=60), ask("Which account?"))
    assert str(task.rows("task.status")[-1].data["message"]).startswith("May refund")
    task.expire()
    (request,) = task.state.help
    assert request.text == "Which account?"
    shown = task.rows("task.status")[-1].data
    assert (shown["state"], shown["message"]) == ("input_required", "Which account?")
