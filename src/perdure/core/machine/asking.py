"""Calls that ask a person in the middle: an attempt ends with a question, and a later one goes on with the answer.

While it waits, a call holds nothing but its open question (P8). The answer goes to the ledger with the next attempt,
which begins under the same key only as the answer to what stands there as asked (P3). A run that ends while a question
is open closes it; the next run finds in the ledger that the call had asked, and closes its key: it never went on.
"""

from pydantic import JsonValue

from perdure.core import events
from perdure.core.digests import cut_text, safe_text
from perdure.core.effects import Answer
from perdure.core.errors import InvalidInput
from perdure.core.machine.doubts import key_of, sender_of
from perdure.core.machine.draft import Draft, replaced
from perdure.core.machine.helping import put_question
from perdure.core.questions import Manner
from perdure.core.state import Asking, CallState


def take_question(draft: Draft, call: CallState, event: events.ToolFinished) -> bool:
    """Put what a call asks to a person; return whether it has asked too often, and is to be closed instead."""
    key = key_of(draft, call)
    draft.log("tool.asked", index=call.index, tool=call.tool, attempt=call.attempts, key=key)
    draft.set_call(call.index, ops=None)
    if draft.run.ending is not None:
        return False
    rounds = 1 if call.asking is None else call.asking.rounds + 1
    if rounds > draft.bounds.questions_per_call_max:
        problem = f"it asked more than {draft.bounds.questions_per_call_max} questions"
        draft.set_call(call.index, problem=problem, asking=None)
        return True
    draft.set_call(call.index, asking=Asking(asked=event.digest, rounds=rounds))
    text = cut_text(safe_text(event.question), draft.bounds.question_bytes_max, " [cut]")
    manner = None if event.form is None else Manner(form=event.form)
    put_question(draft, call, f"{key}/ask/{rounds}", text, event.choices, manner=manner)
    return False


def waits_for_answer(call: CallState) -> bool:
    """Whether the question that is open is one that the call itself asked, and not one about what became of it."""
    return call.asking is not None and call.asking.answer is None


def take_answer(draft: Draft, call: CallState, event: events.Answered) -> None:
    """Keep a person's answer for the attempt that goes on with it, which is to begin now.

    In a run that is ending no attempt begins any more, and the answer would be lost: it is refused.
    """
    if draft.run.ending is not None:
        raise InvalidInput("help_id", f"the run of {event.help_id!r} is ending, and nothing goes on with an answer")
    said: dict[str, JsonValue] = {"index": call.index, "tool": call.tool, "help_id": event.help_id, "text": event.text}
    draft.log_row("help.answered", said | sender_of(event))
    asking = None if call.asking is None else replaced(call.asking, answer=safe_text(event.text))
    draft.set_call(call.index, asked=None, asking=asking)


def answer_of(call: CallState) -> Answer | None:
    """Return what the call's attempts go on with; one that only finds out what became of it goes on with nothing."""
    if call.resolving or call.asking is None or call.asking.answer is None:
        return None
    return Answer(asked=call.asking.asked, text=call.asking.answer)
