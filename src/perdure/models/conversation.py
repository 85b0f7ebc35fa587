"""The transcript as pydantic-ai messages: what a provider is sent.

A transcript is read as *exchanges*: what people said and what tools answered up to a model's reply, then that reply.
The results that follow a reply are paired with its calls by call id, in order where an id repeats, so that whatever
the ids are, each call goes out with exactly one result and each result with its call (R14). Results come first in
their message, because providers want them right behind the calls; then what people said, in order.

A reply goes back as the provider gave it (`native`) where this adapter wrote it down, so that signatures of thinking
survive; otherwise it is built from its text and calls.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.profiles import ModelProfile

from perdure.core.content import DataPart, Entry, Message, ModelEntry, ModelReply, ToolCall, ToolResult, UserEntry
from perdure.core.content import TextPart as OurTextPart
from perdure.core.digests import canonical, safe_text
from perdure.core.errors import InvariantBroken
from perdure.core.ports import BlobReader
from perdure.models.files import file_content
from perdure.models.names import CallIds, sent_name

NATIVE_FORMAT = "pydantic-ai/ModelResponse/1"
"""Names the codec of `native`; an entry with another one is sent from its text and calls."""

MALFORMED_KEY = "malformed_arguments"
"""What a call with malformed arguments is given back under: valid JSON that shows the model what it wrote."""

_UNKNOWN = (
    "OUTCOME UNKNOWN. This call was begun, and it cannot be known whether it took effect. Do not make it again; "
    "tell the person that its outcome is unknown, or find out by other means."
)
_NOT_BEGUN = "NOT BEGUN. This call was not made and had no effect."
_NO_RESULT = "No result of this call was recorded."


@dataclass
class _Exchange:
    """A reply (None before the first) and what followed it."""

    reply: ModelReply | None = None
    results: list[ToolResult] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


async def to_messages(
    transcript: Sequence[Entry], instructions: str, system: str, profile: ModelProfile, blobs: BlobReader
) -> list[ModelMessage]:
    """Return the messages to send; `system` is the provider's name in pydantic-ai.

    Raises:
        InvariantBroken: a result stands without its call, or the transcript ends with a reply that asks for nothing.
        StoreBehind, StoreUnavailable: a file of a message cannot be read.
    """
    ids = CallIds()
    messages: list[ModelMessage] = []
    exchanges = _exchanges(transcript)
    for exchange in exchanges:
        returns: list[ToolReturnPart] = []
        if exchange.reply is not None:
            response, sent_ids = _response(exchange.reply, ids, system)
            if response.parts:
                messages.append(response)
            returns = _returns(exchange, sent_ids)
        elif exchange.results:
            raise InvariantBroken("R14", "a tool result stands before any model reply")
        prompts = [await _prompt(message, profile, blobs) for message in exchange.messages]
        if returns or prompts:
            _append(messages, ModelRequest([*returns, *prompts], instructions=instructions or None))
    if not messages or not isinstance(messages[-1], ModelRequest):
        raise InvariantBroken("R14", "the transcript holds nothing that a model could answer")
    return messages


def _append(messages: list[ModelMessage], request: ModelRequest) -> None:
    """Add a request; behind another one (the reply between them had nothing to send) the two become one."""
    if messages and isinstance(previous := messages[-1], ModelRequest):
        messages[-1] = replace(previous, parts=[*previous.parts, *request.parts])
    else:
        messages.append(request)


def _exchanges(transcript: Sequence[Entry]) -> list[_Exchange]:
    exchanges = [_Exchange()]
    for entry in transcript:
        if isinstance(entry, ModelEntry):
            exchanges.append(_Exchange(reply=entry.reply))
        elif isinstance(entry, UserEntry):
            exchanges[-1].messages.append(entry.message)
        else:
            exchanges[-1].results.append(entry.result)
    return exchanges


# --- replies ----------------------------------------------------------------------------------------------------


def _response(reply: ModelReply, ids: CallIds, system: str) -> tuple[ModelResponse, list[str]]:
    """Return the reply as the provider takes it, and the id of each call as sent."""
    native = _native(reply)
    if native is None:
        parts: list[ModelResponsePart] = [TextPart(safe_text(reply.text))] if reply.text else []
        sent = [ids.give(call.call_id, foreign=True) for call in reply.calls]
        parts += [
            ToolCallPart(sent_name(call.tool), given_back(call), call_id)
            for call, call_id in zip(reply.calls, sent, strict=True)
        ]
        return ModelResponse(parts), sent
    foreign = native.provider_name != system
    sent = []
    parts = []
    for part in native.parts:
        if isinstance(part, ToolCallPart):
            call_id = ids.give(part.tool_call_id, foreign=foreign)
            # An item id points at the provider's own copy, which has the call's first id.
            item_id = part.id if call_id == part.tool_call_id else None
            sent.append(call_id)
            parts.append(
                ToolCallPart(
                    sent_name(part.tool_name),
                    part.args_as_dict(),
                    call_id,
                    id=item_id,
                    provider_name=part.provider_name,
                    provider_details=part.provider_details,
                )
            )
        else:
            parts.append(part)
    return replace(native, parts=parts), sent


def given_back(call: ToolCall) -> dict[str, object]:
    """Return a call's arguments as they are sent back: always a JSON object."""
    if call.arguments is None:
        return {MALFORMED_KEY: call.malformed or ""}
    return dict(call.arguments)


def _native(reply: ModelReply) -> ModelResponse | None:
    """Return the recorded form of a reply, or None where there is none, or none that says the same."""
    if reply.native_format != NATIVE_FORMAT or reply.native is None:
        return None
    try:
        (message,) = ModelMessagesTypeAdapter.validate_python([reply.native])
    except ValidationError:
        # Written under another release of pydantic-ai: the text and the calls are all that is needed.
        return None
    if not isinstance(message, ModelResponse) or len(message.tool_calls) != len(reply.calls):
        return None
    return message


# --- results ----------------------------------------------------------------------------------------------------


def _returns(exchange: _Exchange, sent_ids: list[str]) -> list[ToolReturnPart]:
    """Pair the calls of a reply with their results; a call without one is given the honest stand-in (P4)."""
    waiting: dict[str, deque[ToolResult]] = {}
    for result in exchange.results:
        waiting.setdefault(result.call_id, deque()).append(result)
    returns = []
    calls = exchange.reply.calls if exchange.reply is not None else ()
    for call, sent_id in zip(calls, sent_ids, strict=True):
        found = waiting.get(call.call_id)
        result = (
            found.popleft()
            if found
            else ToolResult(call_id=call.call_id, tool=call.tool, status="unknown", text=_NO_RESULT)
        )
        returns.append(_return(call, result, sent_id))
    if left := [call_id for call_id, results in waiting.items() if results]:
        raise InvariantBroken("R14", f"results without a call in the transcript: {', '.join(map(repr, left))}")
    return returns


def _return(call: ToolCall, result: ToolResult, sent_id: str) -> ToolReturnPart:
    text = safe_text(result.text)
    name = sent_name(call.tool)
    match result.status:
        case "ok":
            return ToolReturnPart(name, text, sent_id)
        case "error":
            return ToolReturnPart(name, f"Error: {text}", sent_id, outcome="failed")
        case "unknown":
            return ToolReturnPart(name, f"{_UNKNOWN} {text}".strip(), sent_id, outcome="interrupted")
        case "not_begun":
            return ToolReturnPart(name, f"{_NOT_BEGUN} {text}".strip(), sent_id, outcome="interrupted")


# --- messages ---------------------------------------------------------------------------------------------------


async def _prompt(message: Message, profile: ModelProfile, blobs: BlobReader) -> UserPromptPart:
    content: list[UserContent] = []
    for part in message.parts:
        if isinstance(part, OurTextPart):
            content.append(safe_text(part.text))
        elif isinstance(part, DataPart):
            content.append(safe_text(canonical(part.data).decode(errors="replace")))
        else:
            content.append(await file_content(part, profile, blobs))
    # Providers refuse a message without content, and would for the rest of the task.
    content = [item for item in content if not isinstance(item, str) or item.strip()] or ["(an empty message)"]
    if len(content) == 1 and isinstance(content[0], str):
        return UserPromptPart(content[0])
    return UserPromptPart(content)
