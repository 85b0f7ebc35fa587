"""Closing calls: each gets exactly one result, and the transcript takes them in call order (R14)."""

from pydantic import JsonValue

from perdure.core.log import LogKind
from perdure.core.machine.draft import Draft
from perdure.core.state import Outcome


def close_call(draft: Draft, index: int, outcome: Outcome, kind: LogKind = "tool.finished", **data: JsonValue) -> None:
    """Give a call its one result; the last one completes the turn.

    A call that finishes before an earlier sibling is logged now and enters the transcript with that sibling, so
    that results stand in call order whatever the order of their completion.
    """
    draft.set_call(index, outcome=outcome, ops=None, asked=None)
    entries = []
    for call in draft.turn.calls:
        if call.outcome is None:
            break
        if not call.recorded:
            draft.set_call(call.index, recorded=True)
            entries.append(draft.enter("tool", call.outcome.digest, call.outcome.inline))
    call = draft.turn.call(index)
    draft.log(
        kind,
        entries=entries,
        index=index,
        tool=call.tool,
        attempt=call.attempts,
        status=outcome.status,
        digest=outcome.digest,
        **data,
    )
    if all(call.outcome is not None for call in draft.turn.calls):
        complete_turn(draft)


def complete_turn(draft: Draft) -> None:
    """R12: a turn without a crash takes one off, once."""
    if not draft.state.crashed_this_turn:
        draft.set(crashes=max(0, draft.state.crashes - 1), shared_deaths=0)
