"""P1: a message that answers a question is recognised when it comes again, like one that was admitted."""

import pytest

from perdure.core import events
from perdure.core.errors import InvalidInput, MessageConflict
from perdure.core.machine import resend
from tests.core.task import Task, ask
from tests.core.test_rules_calls import calling
from tests.core.test_rules_doubts import doubting


def answer(task: Task, text: str) -> int:
    (request,) = task.state.help
    task.apply(
        events.Answered(at_ms=task.at(), help_id=request.help_id, text=text, message_id="m-answer", digest="d-answer")
    )
    return task.rows("help.answered")[-1].number


def remembered(task: Task, number: int) -> None:
    assert resend(task.state, "m-answer", "d-answer") == number
    with pytest.raises(MessageConflict):
        resend(task.state, "m-answer", "other")
    assert task.rows("help.answered")[-1].data["message_digest"] == "d-answer"


def test_p1_a_message_that_answers_the_model_is_remembered() -> None:
    task = calling(ask("Which one?"))
    remembered(task, answer(task, "the red one"))


def test_p1_a_message_that_says_what_became_of_a_call_is_remembered() -> None:
    task = doubting()
    remembered(task, answer(task, "it happened"))


def test_p1_a_message_that_answers_nothing_sensible_is_not_remembered() -> None:
    task = doubting()
    with pytest.raises(InvalidInput):
        answer(task, "perhaps")
    assert resend(task.state, "m-answer", "d-answer") is None


def test_an_answer_without_a_message_leaves_its_row_as_it_was() -> None:
    task = calling(ask("Which one?"))
    (request,) = task.state.help
    task.apply(events.Answered(at_ms=task.at(), help_id=request.help_id, text="the red one"))
    assert {"message_id", "message_digest"}.isdisjoint(task.rows("help.answered")[0].data)
