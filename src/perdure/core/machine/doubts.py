"""Doubts: calls of which nobody can tell whether they happened, and what follows from that (P4, design section 6).

A doubt belongs to a key that was begun. While it stands, the same call is not begun under another key. It is lifted by
what settles it: a result, or a key that is closed. The tool's setting says who is to live with it meanwhile:

- `tell`: the model gets "outcome unknown" as the call's result;
- `ask`: the call stays open until a person has said whether it happened. Their word goes where a check's answer goes,
  through the ledger, so that a result which was recorded meanwhile still wins over it;
- `fail`: the model gets the same result, and the run ends.
"""

from typing import Final

from pydantic import JsonValue

from perdure.core import events
from perdure.core.agent import ToolSpec
from perdure.core.digests import cut_text, safe_text
from perdure.core.effects import Late, Word, effect_key
from perdure.core.errors import InvalidInput, InvariantBroken
from perdure.core.machine.admission import wind_down
from perdure.core.machine.closing import close_call
from perdure.core.machine.draft import Draft, made_result, problem_text, replaced
from perdure.core.machine.helping import put_question
from perdure.core.state import CallState, Doubt, Ending, TaskState

HAPPENED: Final = "it happened"
DID_NOT_HAPPEN: Final = "it did not happen"


def key_of(draft: Draft, call: CallState) -> str:
    """Return the call's present idempotency key."""
    return effect_key(draft.state.task_id, draft.turn.number, call.index, call.generation)


def spec_of(draft: Draft, call: CallState) -> ToolSpec:
    """Return the spec of a call that was started."""
    spec = draft.state.agent.tool(call.tool)
    if spec is None:
        raise InvariantBroken("R14", f"a call of the unknown tool {call.tool!r} was started")
    return spec


def doubt_of(draft: Draft, call: CallState) -> Doubt | None:
    """Return the doubt that stands against beginning this call under a new key; none stands against reading."""
    for doubt in draft.state.doubts:
        if (doubt.tool, doubt.arguments_digest) == (call.tool, call.arguments_digest):
            return doubt
    return None


def lift_doubt(draft: Draft, key: str) -> None:
    """What became of this key is known now."""
    draft.set(doubts=tuple(doubt for doubt in draft.state.doubts if doubt.key != key))


def leave_unknown(draft: Draft, call: CallState, reason: str, twin_of: str = "") -> None:
    """P4: say honestly that the outcome is unknown, to whom the tool's setting names.

    `twin_of` is the key in doubt of a call that was not begun because of it: it gets the same answer, and is no doubt
    of its own. Nobody is asked about it either; what a person says of the other one holds for both.
    """
    key, spec = key_of(draft, call), spec_of(draft, call)
    if call.problem:
        reason += f"; the last attempt failed with: {call.problem}"
    if spec.effect == "read":
        text = f"No result: {reason}. It only reads: ask again if it is still needed."
        close_call(draft, call.index, made_result(call, "error", text), key=key)
        return
    full = not twin_of and _remember(draft, call, key)
    reason = problem_text(reason)
    draft.log("tool.in_doubt", index=call.index, tool=call.tool, attempt=call.attempts, key=key, reason=reason)
    if spec.in_doubt == "ask" and not twin_of:
        _ask(draft, call, key, reason, may_ask=not full and draft.run.ending is None)
    else:
        text = "Outcome unknown. It may have happened: do not assume either, and do not ask for it again. Why: "
        close_call(draft, call.index, made_result(call, "unknown", text + reason), key=key)
    if draft.run.ending is not None:
        return
    if spec.in_doubt == "fail":
        message = f"the outcome of {call.tool} is unknown ({twin_of or key}): {reason}"
        wind_down(draft, Ending(end="failed", reason="tool", message=message))
    elif full:
        wind_down(draft, Ending(end="failed", reason="tool", message="too many outcomes are unknown"))


def _remember(draft: Draft, call: CallState, key: str) -> bool:
    """Remember a doubt; return whether with it there are too many."""
    if any(doubt.key == key for doubt in draft.state.doubts):
        return False
    doubt = Doubt(key=key, tool=call.tool, arguments_digest=call.arguments_digest)
    draft.set(doubts=(*draft.state.doubts, doubt))
    return len(draft.state.doubts) >= draft.bounds.doubts_max


# --- a person's word --------------------------------------------------------------------------------------------


def _ask(draft: Draft, call: CallState, key: str, reason: str, *, may_ask: bool) -> None:
    """Put the call to a person. In a run that ends it rests, and the next run finds out and asks anew."""
    draft.set_call(call.index, ops=None, word=None)
    if not may_ask:
        return
    text = (
        f"Did {call.shown or call.tool} happen? It was begun under the key {key}, and what became of it is unknown: "
        f'{reason}. Answer "{HAPPENED}" or "{DID_NOT_HAPPEN}"; what else you know may follow after a colon.'
    )
    put_question(draft, call, key, text, (HAPPENED, DID_NOT_HAPPEN))


def read_word(text: str) -> Word:
    """Return what a person said of an effect; raises `InvalidInput` for what says neither. Nothing is guessed."""
    said, _, _ = text.partition(":")
    plain = " ".join(said.split()).rstrip(".!").lower()
    if plain not in {HAPPENED, DID_NOT_HAPPEN}:
        raise InvalidInput(
            "text",
            f"{cut_text(safe_text(text.strip()), 100, '…')!r} does not say whether it happened; answer "
            f'"{HAPPENED}" or "{DID_NOT_HAPPEN}", and what else you know after a colon',
        )
    return Word(happened=plain == HAPPENED, text=safe_text(text.strip()))


def take_word(draft: Draft, call: CallState, event: events.Answered) -> None:
    """Record a person's word, which an attempt carries to the ledger: in a run that ends, the next run's."""
    word = read_word(event.text)
    said: dict[str, JsonValue] = {"index": call.index, "tool": call.tool, "help_id": event.help_id, "text": event.text}
    draft.log_row("help.answered", said | sender_of(event))
    draft.set_call(call.index, asked=None, word=word)


def sender_of(event: events.Answered) -> dict[str, JsonValue]:
    """Return what the row of an answer says of who gave it and of the message that it came as, where it came as one."""
    who: dict[str, JsonValue] = {"by": event.by} if event.by else {}
    return who | ({"message_id": event.message_id, "message_digest": event.digest} if event.message_id else {})


def remember(draft: Draft, event: events.Answered) -> None:
    """P1: the message that answered is recognised when it comes again, under the row that was logged just now."""
    if event.message_id:
        seen = (*draft.state.seen, (event.message_id, event.digest, draft.state.last_number))
        draft.set(seen=seen[-draft.bounds.message_ids_remembered :])


# --- results that come late -------------------------------------------------------------------------------------


def watched_keys(state: TaskState) -> tuple[str, ...]:
    """Return the keys under which a result may still come, though their calls are closed."""
    return (*(doubt.key for doubt in state.doubts if doubt.late is None), *state.closed_keys)


def watch_closed(draft: Draft, key: str) -> None:
    """Go on looking for a result under a closed key: one that comes all the same is worth knowing."""
    draft.set(closed_keys=(*draft.state.closed_keys, key)[-draft.bounds.closed_keys_watched_max :])


def take_late(draft: Draft, came: tuple[Late, ...]) -> None:
    """Make each late result an event, once. A doubt keeps it until the model can be told."""
    for late in came:
        if late.key not in watched_keys(draft.state):
            continue
        draft.log("tool.late", key=late.key, status=late.status, text=late.text)
        doubts = [replaced(d, late=late) if d.key == late.key else d for d in draft.state.doubts]
        draft.set(doubts=tuple(doubts), closed_keys=tuple(key for key in draft.state.closed_keys if key != late.key))


def tell_late(draft: Draft, call: CallState, late: Late) -> None:
    """Answer a call that was not begun because of a doubt with what became of that (P4).

    The model asked without knowing; it gets the result that came late, and the doubt is over. If it then asks once
    more, that is a call of its own.
    """
    lift_doubt(draft, late.key)
    text = f"Not begun again: the same call under {late.key} had ended after all, its result came late: {late.text}"
    result = made_result(call, late.status, text)
    close_call(draft, call.index, result, key=key_of(draft, call), late_of=late.key)
