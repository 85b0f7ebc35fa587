"""Anthropic's Messages format, in the shapes of its public API reference."""

import json
from typing import Any

from tests.models.wire_answers import Format, Refused, Request, Said, pieces

MODEL = "claude-haiku-5-5"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def _error(refused: Refused) -> dict[str, Any]:
    kind = refused.code or _KINDS.get(refused.status, "api_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": refused.message},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }


def _stop_reason(said: Said) -> str:
    if said.finish == "length":
        return "max_tokens"
    if said.finish == "refusal":
        return "refusal"
    return "tool_use" if said.calls else "end_turn"


def _input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def _blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if said.thinking or said.signature:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": said.signature})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [
        {"type": "tool_use", "id": call_id, "name": tool, "input": _input(arguments)}
        for call_id, tool, arguments in said.calls
    ]
    return blocks


def _usage(said: Said) -> dict[str, Any]:
    # Anthropic counts what was read from the cache apart from the other input.
    return {
        "input_tokens": said.input_tokens - said.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": said.cached_tokens,
        "output_tokens": said.output_tokens,
    }


def _whole(said: Said, _: Request) -> dict[str, Any]:
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": _blocks(said),
        "stop_reason": _stop_reason(said),
        "stop_sequence": None,
        "usage": _usage(said),
    }


def _events(said: Said, request: Request) -> list[str]:
    opened = {
        **_whole(said, request),
        "content": [],
        "stop_reason": None,
        "usage": {**_usage(said), "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opened}]
    arguments = [call[2] for call in said.calls]
    for index, block in enumerate(_blocks(said)):
        events += _block_events(index, block, arguments)
        if index == 0:
            events.append({"type": "ping"})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": _stop_reason(said), "stop_sequence": None},
            "usage": {"output_tokens": said.output_tokens},
        }
    )
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _block_events(index: int, block: dict[str, Any], arguments: list[str]) -> list[dict[str, Any]]:
    opened: dict[str, Any]
    deltas: list[dict[str, Any]]
    match block["type"]:
        case "text":
            opened = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "thinking":
            opened = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            opened = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments.pop(0))]
    return [
        {"type": "content_block_start", "index": index, "content_block": opened},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _error_event(refused: Refused) -> str:
    return f"event: error\ndata: {json.dumps(_error(refused))}\n\n"


MESSAGES = Format(_whole, _events, _error, _error_event)
