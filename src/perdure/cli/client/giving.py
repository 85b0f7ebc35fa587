"""A message as this client gives it: under an idempotency key, always, and with an id that follows from the key.

So the same key is the same message, also for a command that is run again after it was killed.
"""

import secrets

from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.cli.client.following import Given
from perdure.core import limits
from perdure.core.content import Lane
from perdure.core.digests import digest
from perdure.core.errors import InvalidInput

KEY_BYTES = 16
"""Two keys do not meet by accident."""


def usable_key(key: str | None) -> str:
    """Return the key, or a new one; raises `InvalidInput` for one that no header takes."""
    if key is None:
        return secrets.token_hex(KEY_BYTES)
    if not key.strip() or len(key) > limits.IDEMPOTENCY_KEY_CHARS_MAX or not (key.isascii() and key.isprintable()):
        raise InvalidInput("--key", f"must have 1 to {limits.IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters")
    return key.strip()


def message_id_of(key: str) -> str:
    """Return the id of the message under this key."""
    return f"m-{digest({'key': key})[:32]}"


def given(
    text: str,
    key: str,
    *,
    task_id: str = "",
    context_id: str = "",
    help_id: str = "",
    lane: Lane | None = None,
    at_once: bool = False,
) -> Given:
    """Return what is to be sent; `at_once`: the server is not to wait for the task."""
    message = Message(
        message_id=message_id_of(key),
        role=Role.ROLE_USER,
        parts=[Part(text=text)],
        task_id=task_id,
        context_id=context_id,
    )
    asked = {"helpId": help_id, "lane": lane or ""}
    fields: dict[str, JsonValue] = {name: value for name, value in asked.items() if value}
    if fields:
        extension.put(message.metadata, fields)
    configuration = SendMessageConfiguration(return_immediately=at_once)
    return Given(SendMessageRequest(message=message, configuration=configuration), key)
