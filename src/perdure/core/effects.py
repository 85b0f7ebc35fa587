"""The effect policy: may this attempt of a tool call begin? Decided from the ledger, inside its transaction.

A call's *key* is `task/turn/index`; after a closed key, `task/turn/index/2` and so on. The ledger has one row per
key (what became of it) and one per begun attempt. Only a key that has a begun attempt and no outcome is in doubt.
"""

from typing import Literal

from pydantic import Field, JsonValue

from perdure.core.agent import EffectClass
from perdure.core.content import Frozen, ResultStatus
from perdure.core.digests import digest
from perdure.core.errors import Fenced, KeyReused


def effect_key(task_id: str, turn: int, index: int, generation: int) -> str:
    """Return the idempotency key of a call; minted from what is recorded, never from a position in a history."""
    base = f"{task_id}/{turn}/{index}"
    return base if generation == 1 else f"{base}/{generation}"


def request_digest(tool: str, arguments: dict[str, JsonValue]) -> str:
    """Return the digest of what a key was begun with; raises `ValueError` for NaN and infinities."""
    return digest({"tool": tool, "arguments": arguments})


class Word(Frozen):
    """What a person said of an effect in doubt, in their own words; it stands where no check could tell."""

    happened: bool
    text: str


class Answer(Frozen):
    """A person's answer to what a call asked; `asked` is the digest of the question, as the ledger has it."""

    asked: str
    text: str


class Late(Frozen):
    """A result that was recorded under a key after its call had been closed without it."""

    key: str
    status: ResultStatus
    text: str


class EffectRequest(Frozen):
    """What an attempt tells the ledger before the tool is called.

    `request_digest` covers tool and arguments. With `resolve_only` (a call left open by an unanswered run) nothing
    is begun: the ledger says what became of it, and a key that was never begun is closed. `answer` is what a call that
    asked goes on with; `schema_digest` is the tool's schema as its task was told it. `note` stands before the result
    that the model is told.
    """

    key: str
    task_id: str
    run: int
    turn: int
    index: int = Field(ge=0)
    attempt: int = Field(ge=1)
    tool: str
    effect: EffectClass
    request_digest: str
    worker: str
    resolve_only: bool = False
    answer: Answer | None = None
    schema_digest: str | None = None
    note: str = ""


class LedgerView(Frozen):
    """What the ledger holds under a key, and the fences that concern it.

    `asked` is the digest of what the latest begun attempt asked, where it ended so; attempts before it asked, too, or
    were made again.
    """

    request_digest: str | None = None
    effect: EffectClass | None = None
    outcome: Literal["open", "done", "closed"] | None = None
    result_digest: str | None = None
    begun_attempts: tuple[int, ...] = ()
    asked: str | None = None
    fence: int = 0


Verdict = Literal["begin", "done", "in_doubt", "asked", "not_begun", "closed"]


def judge(request: EffectRequest, view: LedgerView) -> Verdict:
    """Say what this attempt may do; raises `KeyReused` or `Fenced` where it may do nothing at all.

    - `done`: an outcome is recorded; return it without calling (P3).
    - `begin`: write `begun` in this transaction, then call.
    - `in_doubt`: begun before, no outcome, not safe to repeat: ask the tool's check (P4).
    - `asked`: its latest attempt ended by asking, and this one brings no answer to that: ask again.
    - `not_begun`: nothing happened; close the key in this transaction and say so (stopped runs). So it is with a call
      that asked and was never answered: it has not gone on.
    - `closed`: the key is closed; the call may begin only under its next key.
    """
    if view.request_digest is not None and view.request_digest != request.request_digest:
        raise KeyReused(f"P3: {request.key} was begun with another tool or other arguments")
    if view.outcome == "done":
        return "done"
    if view.outcome == "closed":
        never_went_on = not view.begun_attempts or view.asked is not None
        return "not_begun" if request.resolve_only and never_went_on else "closed"
    if request.resolve_only:
        return "in_doubt" if view.begun_attempts and view.asked is None else "not_begun"
    if request.run <= view.fence:
        raise Fenced(f"P9: run {request.run} of task {request.task_id} was stopped before {request.key} began")
    if view.begun_attempts and max(view.begun_attempts) > request.attempt:
        raise Fenced(f"P3: attempt {max(view.begun_attempts)} of {request.key} began before attempt {request.attempt}")
    if view.asked is not None:
        goes_on = request.answer is not None and request.answer.asked == view.asked
        return "begin" if goes_on else "asked"
    if request.effect == "once" and view.begun_attempts:
        return "in_doubt"
    return "begin"
