"""B22: a word about a call that does not wait any more is refused; it becomes neither an order nor another's answer."""

import json
from typing import Any

import pytest

from perdure.core.content import DataPart, FilePart, Message, Part, TextPart
from perdure.core.errors import InvalidInput
from perdure.core.machine import helping
from perdure.core.machine.draft import replaced
from perdure.temporal.admissible import question_for
from perdure.temporal.contracts import InboxItem
from perdure.testing import call, say
from tests.core.task import Task, ask, asking
from tests.core.test_guards import Guard, needed_by_its_test
from tests.core.test_rules_calls import calling
from tests.temporal.bench import Bench, event, rows_of
from tests.temporal.bench import item as spoken
from tests.temporal.test_approvals import BIG, refunding

REFUND = '{"amount":150,"order_id":"A-1"}'


def item(*parts: Part | str | dict[str, Any], **fields: Any) -> InboxItem:
    made = [_part(each) for each in parts]
    return InboxItem(message=Message(message_id="m-2", parts=tuple(made)), **({"answers": True} | fields))


def _part(given: Part | str | dict[str, Any]) -> Part:
    if isinstance(given, str):
        return TextPart(text=given)
    return DataPart(data=given) if isinstance(given, dict) else given


def answered(task: Task, *parts: Part | str | dict[str, Any], **fields: Any) -> str | None:
    """Return which question the message answers; None where it is a message of its own."""
    question = question_for(task.state, item(*parts, **fields))
    return None if question is None else question.help_id


def decided(*after: Any) -> tuple[Task, str]:
    """Return a task whose one approval was given, and the digest of its call."""
    task = calling(asking("refund", REFUND), *after)
    digest = task.state.help[0].digest
    task.answer("approve", "t/1/0", by="alice")
    return task, digest


def test_b22_a_late_word_that_names_its_call_is_no_order_to_the_model() -> None:
    task, digest = decided()
    assert task.state.help == ()
    for said in (f"approve {digest[:8]}", f"Decline {digest[:16]}: no", {"approve": False, "digest": digest}):
        with pytest.raises(InvalidInput, match="names no call that waits: it was answered, or it expired"):
            answered(task, said)
    with pytest.raises(InvalidInput, match="names no call that waits"):
        answered(task, f"approve {digest[:8]}", FilePart(media_type="text/plain", url="https://example.org/why"))


def test_b22_a_late_word_that_names_its_call_is_refused_beside_what_is_open() -> None:
    task, digest = decided(ask("Which account shall I close?"))
    task.finish(0)
    assert [each.kind for each in task.state.help] == ["question"]
    for said in (f"approve {digest[:8]}", {"approve": True, "digest": digest}):
        with pytest.raises(InvalidInput, match="names no call that waits"):
            answered(task, said)


def test_b22_a_second_word_is_no_order_to_a_model_that_had_asked_for_one() -> None:
    task, _ = decided()
    for said in ({"approve": True, "arguments": {"amount": 5}}, "approve", "decline: the colour"):
        with pytest.raises(InvalidInput, match="digest: is missing, and no call waits for a decision"):
            answered(task, said)
    assert answered(task, "please approve") is None


def test_a_bare_word_after_an_approval_answers_no_open_question() -> None:
    task, _ = decided(ask("Which account shall I close?"))
    task.finish(0)
    for said in ("approve", "Decline: no", {"approve": True}):
        with pytest.raises(InvalidInput, match=r"help_id: .* name it \(t/1/1\) or use other words"):
            answered(task, said)
    assert answered(task, "approve", help_id="t/1/1") == "t/1/1"
    assert answered(task, "the blue one") == "t/1/1"


def test_a_bare_word_that_a_question_offers_answers_it() -> None:
    task, _ = decided(ask("Shall I?", choices=("approve", "wait")))
    task.finish(0)
    assert answered(task, "Approve") == "t/1/1"
    with pytest.raises(InvalidInput, match="help_id: "):
        answered(task, "decline")
    form = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
    task, _ = decided(ask("Shall I?", form=form))
    task.finish(0)
    assert answered(task, {"approve": True}) == "t/1/1"


def test_a_bare_word_is_not_taken_by_the_question_before_the_call_that_waits() -> None:
    task = calling(asking("get_order"), ask("Shall I?", choices=("approve", "decline")))
    task.state = replaced(task.state, help=tuple(reversed(task.state.help)))
    assert [each.kind for each in task.state.help] == ["question", "approval"]
    with pytest.raises(InvalidInput, match="help_id: "):
        answered(task, "approve")


def test_where_no_approval_was_ever_asked_for_such_words_are_what_they_say() -> None:
    task = calling(ask("What shall I do?"))
    assert answered(task, "approve") == "t/1/0"
    assert answered(task, "approve 20261130") == "t/1/0"
    task.answer("approve")
    assert answered(task, "approve 20261130") is None
    assert answered(task, {"approve": True}) is None
    with pytest.raises(InvalidInput, match="names no call that waits"):
        answered(task, {"approve": True, "digest": "d" * 64})


def test_what_no_question_is_meant_by_is_a_message_as_before() -> None:
    task, digest = decided()
    assert answered(task, f"approve {digest[:8]}", answers=False) is None
    assert answered(task, json.dumps({"approve": 1})) is None
    assert answered(task, FilePart(media_type="text/plain", url="https://example.org/a")) is None


def test_a_word_on_a_call_whose_run_ends_is_refused() -> None:
    task = calling("notify", asking("refund", REFUND))
    digest = task.state.help[0].digest
    task.stop()
    assert task.state.run is not None
    assert task.state.run.ending is not None
    with pytest.raises(InvalidInput, match="names no call that waits"):
        answered(task, f"approve {digest[:8]}")
    assert answered(task, "and then?") is None


GUARDS = {
    "a word on a call that does not wait is refused": Guard(
        helping.refuse_late_word,
        "_named(approvals, decision) is None",
        "False",
        test_b22_a_late_word_that_names_its_call_is_no_order_to_the_model,
    ),
    "a bare word answers no question by accident": Guard(
        helping.refuse_late_word,
        "(approvals or not _offers(open_now[0], text))",
        "False",
        test_a_bare_word_after_an_approval_answers_no_open_question,
    ),
    "a bare word answers no question that stands before a call": Guard(
        helping.refuse_late_word,
        "(approvals or not _offers",
        "(not _offers",
        test_a_bare_word_is_not_taken_by_the_question_before_the_call_that_waits,
    ),
    "a word that comes second is no message": Guard(
        helping.refuse_late_word,
        "if not open_now:",
        "if False:",
        test_b22_a_second_word_is_no_order_to_a_model_that_had_asked_for_one,
    ),
    "other words are what they say": Guard(
        helping.refuse_late_word,
        "was_asked or as_object",
        "True",
        test_where_no_approval_was_ever_asked_for_such_words_are_what_they_say,
    ),
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_without_its_guard_the_protecting_test_fails(guard: Guard) -> None:
    needed_by_its_test(guard)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_b22_of_two_words_by_message_the_second_is_refused_and_the_first_again_is_known(bench: Bench) -> None:
    agent = bench.agent(
        call("refund", BIG),
        call("ask_participant", {"question": "And now?"}),
        say("done"),
        tools=[refunding(bench.outside)],
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        code = str(asked.data["call_digest"])[:8]
        first = spoken("m-2", f"approve {code}", answers=True, by="alice")
        (receipt,) = (await bench.inbox(task.id, first)).receipts
        assert receipt.number is not None
        question = await event(task, "help.requested", after=asked.number)
        second = spoken("m-3", f"decline {code}: fraud", answers=True, by="bob")
        (refused,) = (await bench.inbox(task.id, second)).receipts
        assert (refused.number, refused.code) == (None, "invalid_input")
        assert "names no call that waits: it was answered" in str(refused.problem)
        (again,) = (await bench.inbox(task.id, first)).receipts
        assert again.number == receipt.number
        await task.answer(question.help_id, "go on")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "message.admitted")) == 1
    assert bench.outside.count("refund A-1 150") == 1
