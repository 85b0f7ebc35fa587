"""Messages as they enter: checked, cleaned, and by reference where they are large."""

import secrets

from perdure.core import limits
from perdure.core.content import FilePart, Message, TextPart
from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput
from perdure.core.ports import Store


def new_id(prefix: str) -> str:
    """Return a fresh id; 64 random bits are unique enough within one deployment, and short enough to type."""
    return f"{prefix}-{secrets.token_hex(8)}"


def refuse_unusable(field: str, name: str, chars_max: int, *, empty: bool = False) -> None:
    """Raise `InvalidInput` for a name that no store can hold; `empty` where it may be none."""
    if len(name) > chars_max or not (name or empty):
        raise InvalidInput(field, f"must have {0 if empty else 1} to {chars_max} characters")
    if safe_text(name) != name:
        raise InvalidInput(field, "holds a NUL or half a surrogate pair, which no store can hold; use another")


async def new_message(store: Store, text: str, message_id: str | None = None) -> Message:
    """Return a message of that text; one over 64 KiB goes to the store as a blob first (durable before it is named).

    Raises `InvalidInput` for an empty or too large text, or an unusable id.
    """
    if not text.strip():
        raise InvalidInput("text", "a message must not be empty")
    if message_id is not None:
        refuse_unusable("message_id", message_id, limits.MESSAGE_ID_CHARS_MAX)
    clean = safe_text(text)
    data = clean.encode()
    if len(data) > limits.BLOB_BYTES_MAX:
        raise InvalidInput("text", f"has {len(data)} bytes, at most {limits.BLOB_BYTES_MAX} are taken; send a URL")
    name = message_id or new_id("m")
    if len(data) < limits.BLOB_BYTES_MIN:
        return Message(message_id=name, parts=(TextPart(text=clean),))
    blob = await store.put_blob(data, "text/plain")
    return Message(message_id=name, parts=(FilePart(media_type="text/plain", name="message.txt", blob=blob),))
