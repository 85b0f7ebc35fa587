"""Short ways to write transcripts and requests."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from perdure.core.content import (
    DataPart,
    Entry,
    FilePart,
    Message,
    ModelEntry,
    ModelReply,
    ResultStatus,
    TextPart,
    ToolCall,
    ToolEntry,
    ToolResult,
    UserEntry,
)
from perdure.core.ports import ModelPort, ModelRequest, ToolSchema

GET_ORDER = ToolSchema(
    name="get_order",
    description="Read an order.",
    parameters={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)
DOTTED = ToolSchema(name="shop.orders/list", description="List orders.", parameters={"type": "object"})


def user(*parts: str | FilePart | DataPart) -> UserEntry:
    content = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return UserEntry(message=Message(message_id="m", parts=content))


def said(text: str = "", *calls: ToolCall) -> ModelEntry:
    return ModelEntry(reply=ModelReply(text=text, calls=calls))


def asked(call_id: str, tool: str = "get_order", **arguments: JsonValue) -> ToolCall:
    return ToolCall(call_id=call_id, tool=tool, arguments=arguments)


def result(call_id: str, text: str = "done", status: ResultStatus = "ok", tool: str = "get_order") -> ToolEntry:
    return ToolEntry(result=ToolResult(call_id=call_id, tool=tool, status=status, text=text))


def request(
    *transcript: Entry, instructions: str = "Be brief.", tools: Sequence[ToolSchema] = (GET_ORDER,)
) -> ModelRequest:
    return ModelRequest(
        task_id="t", turn=1, attempt=1, instructions=instructions, transcript=transcript, tools=tuple(tools)
    )


class Blobs:
    """A blob reader over a dictionary."""

    def __init__(self, **blobs: bytes) -> None:
        self._blobs = blobs

    async def __call__(self, digest: str) -> bytes:
        return self._blobs[digest]


async def ask(model: ModelPort, *transcript: Entry, deltas: list[str] | None = None, **options: Any) -> ModelReply:
    blobs = options.pop("blobs", Blobs())

    def on_delta(text: str) -> None:
        if deltas is not None:
            deltas.append(text)

    return await model.reply(request(*transcript, **options), on_delta, blobs)
