"""What a provider answered, as the core's `ModelReply`.

Everything is made safe to store and to send again: texts without NUL and lone surrogates, call arguments as strict
JSON objects (Python's parser takes `NaN` and `1e999`; providers and digests do not), and the provider's own form with
the same arguments. Arguments that are no JSON object leave `arguments` empty and their cut original in `malformed`.

An answer with neither text nor calls is an error worth another attempt, unless it was cut for length or refused:
those have an outcome of their own, and the same request would be cut or refused again.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Never

from pydantic import JsonValue
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ModelResponsePart, ToolCallPart

from perdure.core import limits
from perdure.core.content import Finish, ModelReply, ToolCall, Usage
from perdure.core.digests import canonical, cut_text, safe_json, safe_text
from perdure.core.errors import ModelError
from perdure.core.ports import ToolSchema
from perdure.models.conversation import NATIVE_FORMAT, given_back
from perdure.models.names import sent_name


def to_reply(response: ModelResponse, model: str, tools: Sequence[ToolSchema]) -> ModelReply:
    """Return a provider's complete answer as a reply.

    Raises:
        ModelError: the answer is empty, or not an answer.
    """
    if response.state == "suspended":
        raise ModelError(f"{model}: the provider suspended its reply, which is not supported", retryable=False)
    if response.finish_reason == "error":
        raise ModelError(f"{model}: the provider ended its reply with an error", retryable=True)
    finish = _finish(response)
    text = safe_text(response.text or "")
    if finish == "refusal" and not text.strip():
        text = safe_text(str((response.provider_details or {}).get("refusal", "")))
    names = {sent_name(tool.name): tool.name for tool in tools}
    calls = tuple(_call(part, names) for part in response.tool_calls)
    if finish == "stop" and not calls and not text.strip():
        only = "only reasoning" if response.thinking else "no text and no tool call"
        raise ModelError(f"{model}: empty reply ({only})", retryable=True)
    native = _native(response, calls)
    return ModelReply(
        text=text,
        calls=calls,
        finish=finish,
        usage=_usage(response),
        model=model,
        native=native,
        native_format="" if native is None else NATIVE_FORMAT,
    )


def _finish(response: ModelResponse) -> Finish:
    match response.finish_reason:
        case "length":
            return "length"
        case "content_filter":
            return "refusal"
        case _:
            return "stop"


# --- calls ------------------------------------------------------------------------------------------------------


def _call(part: ToolCallPart, names: dict[str, str]) -> ToolCall:
    call_id = safe_text(part.tool_call_id)
    tool = safe_text(names.get(part.tool_name, part.tool_name))
    original = part.args
    arguments = _arguments(original)
    if arguments is not None:
        return ToolCall(call_id=call_id, tool=tool, arguments=arguments)
    text = original if isinstance(original, str) else repr(original)
    malformed = cut_text(safe_text(text), limits.PROBLEM_BYTES_MAX, " … (cut)")
    return ToolCall(call_id=call_id, tool=tool, arguments=None, malformed=malformed)


def _arguments(original: str | dict[str, object] | None) -> dict[str, JsonValue] | None:
    """Return the arguments as a JSON object, or None when they are not one."""
    if original is None or (isinstance(original, str) and not original.strip()):
        return {}  # how some providers write a call without arguments
    try:
        text = original if isinstance(original, str) else json.dumps(original, allow_nan=False)
        value = safe_json(json.loads(text, parse_constant=_refuse))
        if not isinstance(value, dict):
            return None
        canonical(value)  # refuses numbers that became infinite
    except (ValueError, TypeError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


# --- the provider's own form ------------------------------------------------------------------------------------


def _native(response: ModelResponse, calls: tuple[ToolCall, ...]) -> JsonValue:
    """Return the answer as it can be given back, or None when it is too large to be kept beside the reply.

    Without it the reply is sent from its text and calls; what is lost is the thinking.
    """
    by_position = iter(calls)
    parts: list[ModelResponsePart] = [
        _with_arguments(part, next(by_position)) if isinstance(part, ToolCallPart) else part for part in response.parts
    ]
    dumped = ModelMessagesTypeAdapter.dump_python([replace(response, parts=parts)], mode="json")
    native = safe_json(dumped[0])
    try:
        size_bytes = len(canonical(native))
    except (ValueError, TypeError):  # a number or object in the provider's details that is no JSON
        return None
    return native if size_bytes <= limits.NATIVE_BYTES_MAX else None


def _with_arguments(part: ToolCallPart, call: ToolCall) -> ToolCallPart:
    return ToolCallPart(
        part.tool_name,
        given_back(call),
        part.tool_call_id,
        id=part.id,
        provider_name=part.provider_name,
        provider_details=part.provider_details,
    )


# --- usage ------------------------------------------------------------------------------------------------------


def _usage(response: ModelResponse) -> Usage:
    usage = response.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        cost_usd=_cost_usd(response),
    )


def _cost_usd(response: ModelResponse) -> float:
    """Return what the call cost by the provider's word or the price list that pydantic-ai brings, else 0."""
    if response.usage.cost is not None:
        return float(response.usage.cost)
    if not response.model_name:
        return 0.0
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):  # no known price, or usage that cannot be priced
        return 0.0
