"""What the services refuse, so that no test passes with a request that they would not take.

Each rule is a clause of the vendors' references (required and known fields, models, roles, which result answers which
call, lengths and patterns), or, where those are silent, what the services are seen to answer (the length of a call's
id, the prefix of an item's). Statuses, types, codes and the named parameter are theirs, the words are not.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from tests.models.wire_answers import Refused

Body = dict[str, Any]
Rule = Callable[[Mapping[str, str], Body], Iterator[Refused]]

OPENAI_MODELS = frozenset({"gpt-4.1", "gpt-5"})
ANTHROPIC_MODELS = frozenset({"claude-haiku-5-5"})

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_CHAT_CALL_ID_CHARS = 40
_RESPONSES_CALL_ID_CHARS = 64
_ITEM_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def refusal(path: str, headers: Mapping[str, str], body: Body) -> Refused | None:
    """Return the error that the service answers this request with, or None where it would answer it."""
    return next(_RULES[path](headers, body), None)


# --- OpenAI -----------------------------------------------------------------------------------------------------


def _wrong(problem: str, param: str | None = None, code: str | None = None, status: int = 400) -> Refused:
    return Refused(status, problem, code, param=param)


def _openai(
    headers: Mapping[str, str], body: Body, required: tuple[str, ...], known: frozenset[str]
) -> Iterator[Refused]:
    if not headers.get("authorization", "").startswith("Bearer "):
        yield _wrong("no key", code="invalid_api_key", status=401)
    for name in required:
        if name not in body:
            yield _wrong(f"{name} is required", name, "missing_required_parameter")
    for name in body.keys() - known:
        yield _wrong(f"{name} is not known", name, "unknown_parameter")
    if body["model"] not in OPENAI_MODELS:
        yield _wrong(f"there is no model {body['model']}", code="model_not_found", status=404)
    if "stream_options" in body and not body.get("stream"):
        yield _wrong("only a stream has stream_options", "stream_options")


def _chat(headers: Mapping[str, str], body: Body) -> Iterator[Refused]:
    yield from _openai(headers, body, ("model", "messages"), _chat_fields())
    for number, tool in enumerate(body.get("tools", [])):
        if not _TOOL_NAME.fullmatch(tool["function"]["name"]):
            yield _wrong("not a name", f"tools[{number}].function.name", "invalid_value")
    waiting: list[str] = []
    for index, message in enumerate(body["messages"]):
        role = f"messages.[{index}].role"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield _wrong("a result without a call in the message before", role)
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield _wrong(f"calls without a result: {waiting}", role)
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        yield from _chat_message(index, message)
    if waiting:
        yield _wrong(f"calls without a result: {waiting}", "messages")


def _chat_message(index: int, message: Body) -> Iterator[Refused]:
    calls = message.get("tool_calls", [])
    for number, call in enumerate(calls):
        if len(call["id"]) > _CHAT_CALL_ID_CHARS:
            yield _wrong("too long", f"messages[{index}].tool_calls[{number}].id", "string_above_max_length")
    if message["role"] == "assistant" and not calls and not message.get("content"):
        yield _wrong("neither content nor calls", f"messages.[{index}].content")


def _responses(headers: Mapping[str, str], body: Body) -> Iterator[Refused]:
    yield from _openai(headers, body, ("model", "input"), _responses_fields())
    for number, tool in enumerate(body.get("tools", [])):
        if not _TOOL_NAME.fullmatch(tool["name"]):
            yield _wrong("not a name", f"tools[{number}].name", "invalid_value")
    waiting: list[str] = []
    for index, item in enumerate(body["input"]):
        yield from _item(index, item)
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                yield _wrong(f"no call for the output of {item['call_id']}", "input")
            waiting.remove(item["call_id"])
    if waiting:
        yield _wrong(f"no output for the calls {waiting}", "input")


def _item(index: int, item: Body) -> Iterator[Refused]:
    kind = item.get("type", "message")
    prefix = _ITEM_PREFIXES.get(kind, "")
    if not (item.get("id") or prefix).startswith(prefix):
        yield _wrong(f"an id that does not begin with {prefix}", f"input[{index}].id", "invalid_value")
    if len(item.get("call_id", "")) > _RESPONSES_CALL_ID_CHARS:
        yield _wrong("too long", f"input[{index}].call_id", "string_above_max_length")
    if kind == "reasoning" and not item.get("encrypted_content"):
        # Known by its id alone, and nothing was stored.
        yield _wrong(f"there is no item {item['id']}", "input", status=404)


@cache
def _chat_fields() -> frozenset[str]:
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase

    return frozenset(CompletionCreateParamsBase.__annotations__) | {"stream"}


@cache
def _responses_fields() -> frozenset[str]:
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    return frozenset(ResponseCreateParamsBase.__annotations__) | {"stream"}


# --- Anthropic --------------------------------------------------------------------------------------------------


def _bad(problem: str) -> Refused:
    return Refused(400, problem)


def _messages(headers: Mapping[str, str], body: Body) -> Iterator[Refused]:
    if not headers.get("x-api-key") and not headers.get("authorization"):
        yield Refused(401, "x-api-key is required")
    if not headers.get("anthropic-version"):
        yield _bad("anthropic-version: required")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield _bad(f"{name}: required")
    for name in body.keys() - _messages_fields():
        yield _bad(f"{name}: not known")
    if body["model"] not in ANTHROPIC_MODELS:
        yield Refused(404, f"model: {body['model']}")
    if body["max_tokens"] < 1:
        yield _bad("max_tokens: at least 1")
    for number, tool in enumerate(body.get("tools", [])):
        if not _ANTHROPIC_TOOL_NAME.fullmatch(tool["name"]):
            yield _bad(f"tools.{number}.custom.name: not a name")
    yield from _turns(body["messages"])


def _turns(messages: list[Body]) -> Iterator[Refused]:
    """Users and the model take turns; what the model called is answered first thing in the next turn."""
    if not messages or messages[0]["role"] != "user":
        yield _bad("messages: the first is the user's")
    called: list[str] = []
    everywhere: set[str] = set()
    # The service joins what one side says in several messages.
    for index, (role, blocks) in enumerate(_joined(messages)):
        if role not in {"user", "assistant"}:
            yield _bad(f"messages.{index}.role: user or assistant")
        yield from _answers(index, blocks, called)
        yield from _blocks(index, blocks)
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in called:
            if not _ANTHROPIC_ID.fullmatch(call_id) or call_id in everywhere:
                yield _bad(f"messages.{index}: tool_use.id: neither a pattern that fits nor unique: {call_id}")
            everywhere.add(call_id)
    if called:
        yield _bad(f"messages: tool_use without tool_result: {called}")


def _answers(index: int, blocks: list[Body], called: list[str]) -> Iterator[Refused]:
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for place, call_id in enumerate(answered):
        if call_id not in called:
            yield _bad(f"messages.{index}.content.{place}: tool_result without tool_use: {call_id}")
    if missing := set(called) - set(answered):
        yield _bad(f"messages.{index - 1}: tool_use without tool_result: {sorted(missing)}")
    if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
        yield _bad(f"messages.{index}: tool_result comes before anything else")


def _blocks(index: int, blocks: list[Body]) -> Iterator[Refused]:
    for place, block in enumerate(blocks):
        if block["type"] == "text" and not block["text"].strip():
            yield _bad(f"messages.{index}.content.{place}.text: empty")
        if block["type"] == "thinking" and not block.get("signature"):
            yield _bad(f"messages.{index}.content.{place}.thinking.signature: required")


def _joined(messages: list[Body]) -> list[tuple[str, list[Body]]]:
    turns: list[tuple[str, list[Body]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


@cache
def _messages_fields() -> frozenset[str]:
    from anthropic.types.beta.message_create_params import MessageCreateParamsBase

    return frozenset(MessageCreateParamsBase.__annotations__) - {"betas"} | {"stream"}


_RULES: dict[str, Rule] = {"/v1/chat/completions": _chat, "/v1/responses": _responses, "/v1/messages": _messages}
