"""OpenAI's two formats, in the shapes of its public API reference."""

import json
from typing import Any

from tests.models.wire_answers import Format, Refused, Request, Said, pieces

CREATED = 1741569952
CHAT_MODEL = "gpt-4.1-2025-04-14"
RESPONSES_MODEL = "gpt-5-2025-08-07"


_SERVER_ERRORS_FROM = 500


def _error(refused: Refused) -> dict[str, Any]:
    return {
        "error": {
            "message": refused.message,
            "type": _error_type(refused),
            "param": refused.param,
            "code": refused.code or ("rate_limit_exceeded" if refused.status == 429 else None),
        }
    }


def _error_type(refused: Refused) -> str:
    if refused.status == 429:
        return refused.code or "tokens"  # which limit it was
    return "server_error" if refused.status >= _SERVER_ERRORS_FROM else "invalid_request_error"


# --- Chat Completions -------------------------------------------------------------------------------------------


def _chat_finish(said: Said) -> str:
    if said.finish == "length":
        return "length"
    return "tool_calls" if said.calls else "stop"


def _chat_usage(said: Said) -> dict[str, Any]:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _chat_whole(said: Said, _: Request) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said.text or None,
        "refusal": said.refusal or None,
        "annotations": [],
    }
    if said.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for call_id, tool, arguments in said.calls
        ]
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": CREATED,
        "model": CHAT_MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_finish(said)}],
        "usage": _chat_usage(said),
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
    }


def _chat_events(said: Said, request: Request) -> list[str]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"content": piece} for piece in pieces(said.text)]
    deltas += [{"refusal": piece} for piece in pieces(said.refusal)]
    for index, (call_id, tool, arguments) in enumerate(said.calls):
        opening = {"index": index, "id": call_id, "type": "function", "function": {"name": tool, "arguments": ""}}
        deltas.append({"tool_calls": [opening]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": p}}]} for p in pieces(arguments)]
    chunks = [_chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]) for delta in deltas]
    chunks.append(_chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _chat_finish(said)}]))
    if (request.get("stream_options") or {}).get("include_usage"):
        # Then every chunk has the field, and the last one has the figures and no choice.
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**_chunk([]), "usage": _chat_usage(said)})
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": CHAT_MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
        "choices": choices,
    }


def _chat_error_event(refused: Refused) -> str:
    return f"data: {json.dumps(_error(refused))}\n\n"


CHAT = Format(_chat_whole, _chat_events, _error, _chat_error_event)


# --- Responses --------------------------------------------------------------------------------------------------


def _items(said: Said, request: Request) -> list[dict[str, Any]]:
    # What is stored is known by its id; only who asks for it gets it to keep himself.
    sealed = "reasoning.encrypted_content" in (request.get("include") or [])
    items: list[dict[str, Any]] = []
    if said.thinking or said.signature:
        items.append(
            {
                "type": "reasoning",
                "id": "rs_67ccfcdd16748190",
                "summary": [{"type": "summary_text", "text": said.thinking}] if said.thinking else [],
                "encrypted_content": (said.signature or None) if sealed else None,
            }
        )
    content: list[dict[str, Any]] = []
    if said.text:
        content.append({"type": "output_text", "text": said.text, "annotations": [], "logprobs": []})
    if said.refusal:
        content.append({"type": "refusal", "refusal": said.refusal})
    if content:
        items.append(
            {
                "type": "message",
                "id": "msg_67ccd2bf17f0819081",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_67ca09c6bedc{number}",
            "call_id": call_id,
            "name": tool,
            "arguments": arguments,
            "status": "completed",
        }
        for number, (call_id, tool, arguments) in enumerate(said.calls)
    ]
    return items


def _responses_whole(said: Said, request: Request, status: str | None = None) -> dict[str, Any]:
    cut = said.finish == "length"
    return {
        "id": "resp_67ccd2bed1ec8190b14f964abc054267",
        "object": "response",
        "created_at": CREATED,
        "status": status or ("incomplete" if cut else "completed"),
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut and status is None else None,
        "instructions": None,
        "max_output_tokens": None,
        "model": RESPONSES_MODEL,
        "output": [] if status else _items(said, request),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "medium", "summary": None},
        "store": request.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None
        if status
        else {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": said.cached_tokens},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        },
        "user": None,
        "metadata": {},
    }


def _responses_events(said: Said, request: Request) -> list[str]:
    begun = _responses_whole(said, request, "in_progress")
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(_items(said, request)):
        events += _item_events(index, item)
    ended = "response.incomplete" if said.finish == "length" else "response.completed"
    events.append({"type": ended, "response": _responses_whole(said, request)})
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]


def _item_events(index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": index}
    empty: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": []},
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    opened = {**item, **empty[item["type"]], **({"status": "in_progress"} if "status" in item else {})}
    events: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": index, "item": opened}]
    if item["type"] == "function_call":
        events += [
            {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            for piece in pieces(item["arguments"])
        ]
        events.append(
            {
                "type": "response.function_call_arguments.done",
                **at,
                "name": item["name"],
                "arguments": item["arguments"],
            }
        )
    elif item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            events += _summary_events({**at, "summary_index": number}, part)
    else:
        for number, part in enumerate(item["content"]):
            events += _content_events({**at, "content_index": number}, part)
    events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return events


def _summary_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    name = "response.reasoning_summary"
    return [
        {"type": f"{name}_part.added", **at, "part": {"type": "summary_text", "text": ""}},
        *({"type": f"{name}_text.delta", **at, "delta": piece} for piece in pieces(part["text"])),
        {"type": f"{name}_text.done", **at, "text": part["text"]},
        {"type": f"{name}_part.done", **at, "part": part},
    ]


def _content_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    field = "text" if part["type"] == "output_text" else "refusal"
    name = f"response.{part['type']}"
    logprobs: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    return [
        {"type": "response.content_part.added", **at, "part": {**part, field: ""}},
        *({"type": f"{name}.delta", **at, "delta": piece, **logprobs} for piece in pieces(part[field])),
        {"type": f"{name}.done", **at, field: part[field], **logprobs},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _responses_error_event(refused: Refused) -> str:
    code = refused.code or ("rate_limit_exceeded" if refused.status == 429 else "server_error")
    failed = {**_responses_whole(Said(), {}, "failed"), "error": {"code": code, "message": refused.message}}
    event = {"type": "response.failed", "response": failed, "sequence_number": 9}
    return f"event: response.failed\ndata: {json.dumps(event)}\n\n"


RESPONSES = Format(_responses_whole, _responses_events, _error, _responses_error_event)
