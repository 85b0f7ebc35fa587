"""A2A's message to ours and back, with nothing lost on the way.

Our message has what a model is shown: texts, data, files by the digest of a blob. All else that the client sent (roles,
ids, metadata, references, media types) is its *envelope*: the message's ProtoJSON without the contents of its parts,
which would stand there twice. `restored` puts the contents back; what it returns is what came.

Blobs are stored before the message is named anywhere, so that a message that is accepted has its files.
"""

from typing import Any, Final

from a2a.types.a2a_pb2 import Message as A2AMessage
from a2a.types.a2a_pb2 import Part as A2APart
from a2a.types.a2a_pb2 import Role
from google.protobuf.json_format import MessageToDict, Parse, ParseDict
from pydantic import JsonValue

from perdure.a2a.errors import invalid
from perdure.a2a.exact import EXACT_MAX, doubtful
from perdure.core import limits
from perdure.core.content import DataPart, FilePart, Message, Part, TextPart
from perdure.core.digests import canonical, safe_json, safe_text
from perdure.core.ports import Store

TEXT: Final = "text/plain"
JSON: Final = "application/json"
UNKNOWN: Final = "application/octet-stream"


async def taken_in(given: A2AMessage, store: Store) -> Message:
    """Return our message of what a client sent; parts that are large, and files, are in the store when this returns.

    Raises A2A's errors for what no task could take, and `StoreUnavailable`.
    """
    _refuse(given)
    room = limits.MESSAGE_INLINE_BYTES_MAX
    parts: list[Part] = []
    for i, part in enumerate(given.parts):
        parts.append(await _part(f"message.parts[{i}]", part, min(room, limits.BLOB_BYTES_MIN), store))
        room -= _inline_bytes(parts[-1])
    if not any(_says_something(part) for part in parts):
        raise invalid("message.parts", "hold nothing; send text, data or a file")
    return Message(message_id=given.message_id, parts=tuple(parts), envelope=_envelope(given))


def restored(message: Message, task_id: str, context_id: str, blobs: dict[str, bytes]) -> A2AMessage:
    """Return the message as its sender sent it, with the ids of its task; `blobs` are the bytes of `blobs_of`."""
    envelope: dict[str, Any] = dict(message.envelope or {})
    bare = envelope.pop("parts", None)
    found = ParseDict(envelope, A2AMessage(message_id=message.message_id, role=Role.ROLE_USER))
    for i, part in enumerate(message.parts):
        around = bare[i] if isinstance(bare, list) and i < len(bare) else {}
        found.parts.append(_restored_part(part, around, blobs))
    found.task_id, found.context_id = task_id, context_id
    return found


def blobs_of(message: Message) -> set[str]:
    """Return the digests of the blobs that the message's parts are made of."""
    return {part.blob for part in message.parts if isinstance(part, FilePart) and part.blob is not None}


def _refuse(given: A2AMessage) -> None:
    name = given.message_id
    if not 0 < len(name) <= limits.MESSAGE_ID_CHARS_MAX or safe_text(name) != name:
        raise invalid(
            "message.messageId", f"must have 1 to {limits.MESSAGE_ID_CHARS_MAX} characters, no NUL among them"
        )
    if given.role != Role.ROLE_USER:
        raise invalid("message.role", "must be ROLE_USER; the agent's own messages are not sent to it")
    if len(given.parts) > limits.MESSAGE_PARTS_MAX:
        raise invalid("message.parts", f"are {len(given.parts)}, at most {limits.MESSAGE_PARTS_MAX} are taken")


async def _part(field: str, part: A2APart, room: int, store: Store) -> Part:
    match part.WhichOneof("content"):
        case "text":
            text = safe_text(part.text)
            if len(text.encode()) < room:
                return TextPart(text=text)
            return await _blob(field, text.encode(), part.media_type or TEXT, part.filename, store)
        case "data":
            data = safe_json(MessageToDict(part.data))
            _refuse_falsified(field, data)
            encoded = _encoded(field, data)
            if len(encoded) < room:
                return DataPart(data=data)
            return await _blob(field, encoded, part.media_type or JSON, part.filename, store)
        case "raw":
            return await _blob(field, part.raw, part.media_type or UNKNOWN, part.filename, store)
        case "url":
            if not part.url.startswith(("https://", "http://")):
                raise invalid(f"{field}.url", "must begin with https:// or http://")
            return FilePart(media_type=part.media_type or UNKNOWN, name=part.filename or None, url=part.url)
        case _:
            raise invalid(field, "has no content; give text, raw, url or data")


def _refuse_falsified(field: str, data: JsonValue) -> None:
    """Refuse an edit of a call that names another number than its sender meant: it would be run."""
    if isinstance(data, dict) and isinstance(data.get("approve"), bool):
        place = next(doubtful(data.get("arguments"), f"{field}.data.arguments"), None)
        if place is not None:
            raise invalid(
                place,
                f"is a whole number beyond {EXACT_MAX}, which a data part does not keep exactly; send the same object "
                "as a text part that is JSON",
            )


def _encoded(field: str, data: JsonValue) -> bytes:
    try:
        return canonical(data)
    except ValueError as error:
        raise invalid(f"{field}.data", f"is not JSON ({error}); leave NaN and infinities out") from error


async def _blob(field: str, data: bytes, media_type: str, name: str, store: Store) -> FilePart:
    if len(data) > limits.BLOB_BYTES_MAX:
        raise invalid(field, f"has {len(data)} bytes, at most {limits.BLOB_BYTES_MAX} are taken; send a URL")
    digest = await store.put_blob(data, safe_text(media_type))
    return FilePart(media_type=safe_text(media_type), name=safe_text(name) or None, blob=digest)


def _inline_bytes(part: Part) -> int:
    match part:
        case TextPart(text=text):
            return len(text.encode())
        case DataPart(data=data):
            return len(canonical(data))
        case _:
            return 0


def _says_something(part: Part) -> bool:
    return not isinstance(part, TextPart) or bool(part.text.strip())


def _envelope(given: A2AMessage) -> dict[str, JsonValue]:
    bare = A2AMessage()
    bare.CopyFrom(given)
    kinds: list[JsonValue] = []
    for part in bare.parts:
        kinds.append(part.WhichOneof("content"))
        part.ClearField(part.WhichOneof("content"))
    envelope: dict[str, JsonValue] = MessageToDict(bare)
    envelope["parts"] = [
        {**around, "content": kind} for around, kind in zip(_listed(envelope.get("parts")), kinds, strict=True)
    ]
    safe = safe_json(envelope)
    if not isinstance(safe, dict) or len(_encoded("message", safe)) > limits.ENVELOPE_BYTES_MAX:
        raise invalid("message.metadata", f"is larger than {limits.ENVELOPE_BYTES_MAX} bytes; send it as a data part")
    return safe


def _listed(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _restored_part(part: Part, around: dict[str, Any], blobs: dict[str, bytes]) -> A2APart:
    kind = around.get("content")
    found = ParseDict({name: value for name, value in around.items() if name != "content"}, A2APart())
    match part:
        case TextPart(text=text):
            found.text = text
        case DataPart(data=data):
            Parse(canonical(data), found.data)
        case FilePart(url=str() as url):
            found.url = url
        case FilePart(blob=str() as digest):
            content = blobs[digest]
            if kind == "text" or (kind is None and part.media_type.startswith("text/")):
                found.text = content.decode(errors="replace")
            elif kind == "data":
                Parse(content, found.data)
            else:
                found.raw = content
    if isinstance(part, FilePart) and kind is None:
        found.media_type, found.filename = part.media_type, part.name or ""
    return found
