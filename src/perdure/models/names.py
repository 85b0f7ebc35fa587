"""Names and ids that every provider accepts, and the way back.

Providers agree on little more than letters, digits, `_` and `-`, and a letter first; 64 of them in a name, 40 in the
id of a call (OpenAI's Chat Completions; its Responses take 64). A name that fits is sent as it is; another is replaced
by one made from it and its digest, so that the same name is always sent as the same and two names never meet. Call ids
are also made unique within a request: a model may use one again in a later turn (it only has to pair call and result
within its turn), and some providers refuse the repetition.
"""

import hashlib
import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_KEPT_CHARS = 48
"""How much of a name stays readable: with the digest below it is well under 64."""
_ID_KEPT_CHARS = 32
"""The same of an id: with the number behind it stays under 40."""


def _tag(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10]


def sent_name(tool: str) -> str:
    """Return the name under which a tool is sent; one that fits already is unchanged."""
    if _NAME.fullmatch(tool):
        return tool
    readable = _OTHER.sub("_", tool)[:_KEPT_CHARS]
    prefix = "" if re.match(r"[A-Za-z_]", readable) else "t_"
    return f"{prefix}{readable}_{_tag(tool)}"


class CallIds:
    """Gives each call of one request its id, in the order of the transcript."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def give(self, call_id: str, *, foreign: bool) -> str:
        """Return the id to send for the next call that came with `call_id`.

        A provider's own id goes back to it unchanged unless it was used before in this request; one of another
        origin (`foreign`) must also be one that every provider accepts.
        """
        base = call_id
        if not base or (foreign and not _ID.fullmatch(base)):
            base = f"call_{_tag(call_id)}"
        sent, repetition = base, 1
        while sent in self._used:
            repetition += 1
            sent = f"{_OTHER.sub('_', base)[:_ID_KEPT_CHARS]}_{repetition}"
        self._used.add(sent)
        return sent
