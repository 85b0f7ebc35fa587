"""Approvals: a person's word on one call before it begins (design sections 6 and 11).

The rules (`rulebook.py`) come to a *ruling* for each call, which is recorded with the model's answer. A call whose
ruling asks waits, and nothing of it begins. What a person says of it is read here, and nothing is guessed.

An approval is given to one call: to its tool, its arguments and its key, all three in one digest. The machine begins
no call that needs one without it (`machine/approving.py`), and the worker compares the digest with what it is about
to run. The key is that of the call (`task/turn/index`), which never occurs again, so that an approval cannot be used
for another call however alike. Where a check says that the call did not happen and never will under its key, it may
begin anew under its next one with the same approval: that was given to the call, and has brought nothing yet.
"""

import re
from typing import Final, Literal

from pydantic import JsonValue

from perdure.core import asking_limits, limits
from perdure.core.content import Frozen
from perdure.core.digests import canonical, cut_text, digest, read_json, safe_text
from perdure.core.effects import request_digest
from perdure.core.errors import InvalidInput

APPROVE: Final = "approve"
DECLINE: Final = "decline"

CODE_DIGITS: Final = 8
"""The first digits of a call's digest, by which a word says which call it is about: 32 bits among a task's few."""

_WORD: Final = re.compile(f"({APPROVE}|{DECLINE})(?: ([0-9a-f]{{{CODE_DIGITS},64}}))?")


class Ruling(Frozen):
    """What the rules came to for one call that may not simply begin. `rule` is the one that decided, in words."""

    then: Literal["deny", "ask"]
    rule: str
    reason: str = ""
    expires_in_s: float | None = None


class Approval(Frozen):
    """A person's approval of one call. `digest` binds it; `arguments` are what they had run in place of the model's."""

    digest: str
    by: str = ""
    reason: str = ""
    arguments: dict[str, JsonValue] | None = None


class Decision(Frozen):
    """What a person said of a call that waits for them; `digest` is that of the call, or its first digits."""

    approve: bool
    reason: str = ""
    arguments: dict[str, JsonValue] | None = None
    digest: str = ""


def call_digest(tool: str, arguments_digest: str, key: str) -> str:
    """Return the digest of one exact call; `arguments_digest` covers tool and arguments, as the ledger has it."""
    return digest({"tool": tool, "call": arguments_digest, "key": key})


def approves(approval: Approval, tool: str, arguments: dict[str, JsonValue], key: str) -> bool:
    """Whether this approval was given to this very call."""
    return approval.digest == call_digest(tool, request_digest(tool, arguments), key)


def code_of(digest: str) -> str:
    """Return the digits by which a person names a call that waits."""
    return digest[:CODE_DIGITS]


def edited_note(approval: Approval | None) -> str:
    """Return what the model is told before the result of a call that a person changed; empty where nobody did."""
    if approval is None or approval.arguments is None:
        return ""
    shown = canonical(approval.arguments).decode()
    return (
        cut_text(
            safe_text(f"A person approved this call with other arguments: {shown}"), limits.PROBLEM_BYTES_MAX, "… [cut]"
        )
        + ".\n"
    )


def bounded_reason(text: str) -> str:
    """Return a reason as it may stand in rows and in the state."""
    return cut_text(safe_text(text), asking_limits.REASON_BYTES_MAX, "… [cut]")


def read_decision(text: str) -> Decision:
    """Return what a person said: `approve`, `decline`, `decline: why`, or an object that says it.

    After the word may follow which call it is about: `approve 1a2b3c4d`. In the object,
    `{"approve": true, "reason": "…", "arguments": {…}, "digest": "…"}`, all but the first may be left out. Raises
    `InvalidInput` for what says neither: nothing is guessed.
    """
    if text.lstrip().startswith("{"):
        return _read_object(text)
    said, _, why = text.partition(":")
    found = _WORD.fullmatch(" ".join(said.split()).rstrip(".!").lower())
    if found is None:
        raise InvalidInput(
            "text",
            f"{cut_text(safe_text(text.strip()), 100, '…')!r} neither approves nor declines; answer "
            f'"{APPROVE}" or "{DECLINE}: why"',
        )
    return Decision(approve=found[1] == APPROVE, reason=bounded_reason(why.strip()), digest=found[2] or "")


def _read_object(text: str) -> Decision:
    try:
        given = read_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("text", f"is no JSON object ({error})") from error
    if not isinstance(given, dict):
        raise InvalidInput("text", "is no JSON object")
    unknown = sorted(set(given) - {"approve", "reason", "arguments", "digest"})
    if unknown:
        raise InvalidInput(unknown[0], "unknown; an approval has approve, reason, arguments and digest")
    approve, reason, arguments = given.get("approve"), given.get("reason", ""), given.get("arguments")
    if not isinstance(approve, bool):
        raise InvalidInput("approve", "must be true or false")
    if not isinstance(reason, str):
        raise InvalidInput("reason", "must be a text")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidInput("arguments", "must be an object: all arguments of the call, as they are to be run")
    if arguments is not None and not approve:
        raise InvalidInput("arguments", "are for a call that is approved; leave them out")
    named = given.get("digest", "")
    if not isinstance(named, str) or 0 < len(named) < CODE_DIGITS:
        raise InvalidInput("digest", f"must be that of the call that was shown, or its first {CODE_DIGITS} digits")
    return Decision(approve=approve, reason=bounded_reason(reason.strip()), arguments=arguments, digest=named)
