"""Help requests: what a person is asked, until they have answered, it expires, or its run ends.

A request belongs to one call, which waits. One that expires has a wait of its own until an absolute time, which a
restart does not move; one that does not has none (P8). What comes for a request that is not open any more is refused
and told so: of two answers the first one counts, and of an answer and an expiry.
"""

import contextlib
from collections.abc import Sequence

from pydantic import JsonValue

from perdure.core import events
from perdure.core.approvals import APPROVE, DECLINE, Decision, code_of, read_decision
from perdure.core.commands import AwaitExpiry, DropExpiry
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import InvalidInput
from perdure.core.machine.closing import close_call
from perdure.core.machine.draft import Draft, made_result
from perdure.core.questions import Manner, read
from perdure.core.state import CallState, HelpRequest, TaskState


def put_question(
    draft: Draft,
    call: CallState,
    help_id: str,
    text: str,
    choices: tuple[str, ...] = (),
    *,
    manner: Manner | None = None,
    digest: str = "",
    about: dict[str, JsonValue] | None = None,
) -> None:
    """Open a help request; the call waits for its answer. With the `digest` of a call it asks for an approval."""
    form = None if manner is None else manner.form
    expires_in_s = None if manner is None else manner.expires_in_s
    expires_at_ms = None if expires_in_s is None else draft.at_ms + int(expires_in_s * 1000)
    request = HelpRequest(
        help_id=help_id,
        text=text,
        turn=draft.turn.number,
        index=call.index,
        choices=choices if manner is None else manner.choices or choices,
        kind="approval" if digest else "question",
        form=form,
        expires_at_ms=expires_at_ms,
        digest=digest,
    )
    draft.set(help=(*draft.state.help, request))
    draft.asks_other = True
    draft.set_call(call.index, asked=help_id)
    data: dict[str, JsonValue] = {"help_id": help_id, "index": call.index, "text": text}
    data |= {"choices": list(request.choices)} if request.choices else {}
    data |= {"schema": form} if form is not None else {}
    data |= {"expires_at_ms": expires_at_ms} if expires_at_ms is not None else {}
    data |= {"help_kind": "approval", "call_digest": digest, **(about or {})} if digest else {}
    draft.log_row("help.requested", data)
    if expires_at_ms is not None:
        draft.ask(expiry_command(request, expires_at_ms))


def expiry_command(request: HelpRequest, at_ms: int) -> AwaitExpiry:
    """Return the command that waits for a request's expiry."""
    return AwaitExpiry(help_id=request.help_id, turn=request.turn, index=request.index, at_ms=at_ms)


def close_request(draft: Draft, request: HelpRequest, *, over: bool = False) -> None:
    """It is open no more, and nothing waits for its expiry; with `over` nothing does already."""
    draft.set(help=tuple(h for h in draft.state.help if h.help_id != request.help_id))
    draft.asks_other = True
    if request.expires_at_ms is not None and not over:
        draft.ask(DropExpiry(help_id=request.help_id))
    if draft.run.idle_since_ms is not None:
        idle_ms = draft.run.idle_ms + draft.at_ms - draft.run.idle_since_ms
        draft.set_run(idle_ms=idle_ms, idle_since_ms=None)


def open_request(state: TaskState, help_id: str) -> HelpRequest:
    """Return the open request of that id; raises `InvalidInput` saying why there is none."""
    request = next((h for h in state.help if h.help_id == help_id), None)
    if request is None:
        raise not_open(state, help_id)
    return request


def not_open(state: TaskState, help_id: str, open_now: tuple[HelpRequest, ...] | None = None) -> InvalidInput:
    """Return the refusal of an answer to what is not open (any more)."""
    open_ids = ", ".join(h.help_id for h in (state.help if open_now is None else open_now)) or "none"
    was = " any more: it was answered, it expired, or its run ended" if _was_possible(state, help_id) else ""
    return InvalidInput("help_id", f"{help_id!r} is not an open question of this task{was}; open ones: {open_ids}")


def meant_by(state: TaskState, open_now: tuple[HelpRequest, ...], text: str) -> HelpRequest:
    """Return which of the open requests a message answers that names none: the first.

    A word on an approval must say which, unless the task has asked for no other one and asks nothing else: its sender
    may have seen another one, which expired or was answered meanwhile (B22). Raises `InvalidInput` where it does not.
    """
    refuse_late_word(state, open_now, text)
    approvals = _approvals(open_now)
    named = _named(approvals, _decision(state, text))
    if named is not None:
        return named
    if open_now[0].kind == "question" or (len(open_now) == 1 and state.approvals == 1):
        return open_now[0]
    codes = " or ".join(f'"{APPROVE} {code_of(each.digest)}"' for each in approvals)
    ids = ", ".join(each.help_id for each in open_now)
    raise InvalidInput("help_id", f"is missing, and the words do not say which call: say {codes}, or name one of {ids}")


def refuse_late_word(state: TaskState, open_now: tuple[HelpRequest, ...], text: str) -> None:
    """Refuse a message that decides about a call which does not wait: it came late, or second (B22).

    It must become neither an order to the model nor the answer to a question that its sender never saw. One that names
    its call means that call and nothing else. One that names none is refused where nothing is open, and where a
    question is that does not offer this very answer. A task that never asked for an approval takes such words as what
    they say: `approve 20261130` may be about an order.
    """
    decision = _decision(state, text)
    if decision is None:
        return
    as_object = text.lstrip().startswith("{")
    approvals = _approvals(open_now)
    was_asked = bool(state.approvals or approvals)
    if decision.digest and (was_asked or as_object) and _named(approvals, decision) is None:
        code = cut_text(safe_text(decision.digest), 64, "…")
        problem = f"{code!r} names no call that waits: it was answered, or it expired, or its run ended"
        raise InvalidInput("digest", f"{problem}; nothing was changed")
    if decision.digest or not was_asked:
        return
    if not open_now:
        problem = "is missing, and no call waits for a decision (any more): it was answered, or it expired"
        raise InvalidInput("digest", f"{problem}; to say this to the agent, use other words")
    if open_now[0].kind == "question" and (approvals or not _offers(open_now[0], text)):
        problem = "is missing, and the words may be meant for a call that waited: to answer the question, name it"
        raise InvalidInput("help_id", f"{problem} ({open_now[0].help_id}) or use other words")


def _approvals(open_now: Sequence[HelpRequest]) -> list[HelpRequest]:
    return [each for each in open_now if each.kind == "approval"]


def _decision(state: TaskState, text: str) -> Decision | None:
    """Return what a text decides; None where it decides nothing. Messages are long, and few hold such a word."""
    said = text.casefold() if len(text) <= state.agent.bounds.answer_bytes_max else ""
    if APPROVE not in said and DECLINE not in said:
        return None
    with contextlib.suppress(InvalidInput):
        return read_decision(text)
    return None


def _named(approvals: Sequence[HelpRequest], decision: Decision | None) -> HelpRequest | None:
    """Return the approval whose call a decision names."""
    if decision is None or not decision.digest:
        return None
    return next((each for each in approvals if each.digest.startswith(decision.digest)), None)


def _offers(question: HelpRequest, text: str) -> bool:
    """Whether a question lists this answer, and does not only take any words."""
    if not question.choices and question.form is None:
        return False
    with contextlib.suppress(InvalidInput):
        read(text, question.choices, question.form)
        return True
    return False


def _was_possible(state: TaskState, help_id: str) -> bool:
    """Whether a call of this task may have asked under that id: an id is the key of its call."""
    task, _, place = help_id.partition("/")
    turn, _, index = place.partition("/")
    named = task == state.task_id and turn.isdecimal() and index.split("/")[0].isdecimal()
    return named and 0 < int(turn) <= state.turns


def expired(draft: Draft, event: events.HelpExpired) -> None:
    """The time for an answer is over: the call that waited gets that as its result, once.

    An answer may have come in the very moment in which the wait is over; and a run that is ending closes what it asked.
    """
    request = next((h for h in draft.state.help if h.help_id == event.help_id), None)
    if request is None or draft.run.ending is not None:
        return
    call = draft.open_call(request.turn, request.index)
    close_request(draft, request, over=True)
    if request.kind == "approval":
        text = "Declined: nobody approved it in time. It was not begun."
    else:
        text = "Not answered: nobody answered in time. Go on without the answer, or ask again."
    result = made_result(call, "not_begun", text)
    close_call(draft, call.index, result, "help.closed", help_id=event.help_id, reason="expired")
