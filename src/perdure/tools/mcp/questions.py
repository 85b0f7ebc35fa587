"""A server's questions (elicitation), put to a person one at a time, and a person's words as the answers it wants.

A server that needs input ends the call with its questions and a state of its own. Both are kept, with the answers that
there are so far; when none is missing the call is made again with all of them. So nothing of it is held in a process.

A person answers in words. A form with one field takes them as its value, of the type that it has; one with several
takes a JSON object. What does not fit is asked for again with the reason, and the server hears nothing of it.

A word is what the question offers: one of a field's values before anything else, and the word by which a person refuses
is another one where a value is `decline`. The protocol's other refusal, `cancel`, is for whoever closes a window; it is
not offered, and so it is a value or nothing. Where any text is an answer, a bare `cancel` is asked about.

People take days, and a server's state may be good for minutes, or for as long as its process. One that does not take
its own state back is called from the beginning, and what it asks then is answered with what a person said to just that
question. A person is asked only what was not asked before.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    InputResponses,
)
from pydantic import JsonValue

from perdure.core.artifacts import Asks
from perdure.core.digests import digest, safe_json
from perdure.core.errors import ConfigurationError, InvalidInput, ToolError
from perdure.core.forms import checked_form
from perdure.tools.environment import Environment
from perdure.tools.json_arguments import JsonArguments

DECLINE: Final = "decline"
_YES: Final = frozenset({"yes", "y", "true", "ok", "accept", "done"})
_NO: Final = frozenset({"no", "n", "false"})
_REFUSES: Final = frozenset({DECLINE, f"/{DECLINE}"})
"""The second is one that no approval is declined by, for who cannot say which question they answer."""


@dataclass(frozen=True)
class Answers:
    """What a call goes on with."""

    responses: InputResponses | None = None
    state: str | None = None
    said: Mapping[str, JsonValue] = field(default_factory=dict)
    """Every answer that a person gave in this call, by the digest of its question."""
    again: bool = False
    """Whether the call was begun anew, and questions that were answered are not to be put again."""


def asked(tool: str, given: InputRequiredResult, so_far: Answers) -> Asks | Answers:
    """Return the first of a server's questions that a person must answer, or all that was answered before.

    Raises `ToolError` where it asks for what is not offered.
    """
    requests: dict[str, JsonValue] = {}
    for key, request in (given.input_requests or {}).items():
        if not isinstance(request, ElicitRequest):
            raise ToolError(f"Not done: {tool} asks for {request.method}, and nobody here answers that.")
        requests[key] = safe_json(request.model_dump(mode="json", by_alias=True, exclude_none=True))
    known = {key: so_far.said[digest(each)] for key, each in requests.items() if digest(each) in so_far.said}
    kept: dict[str, JsonValue] = {
        "requests": requests,
        "responses": known if so_far.again else {},
        "state": given.request_state,
        "said": dict(so_far.said),
    }
    return _answers(kept) if so_far.again and len(known) == len(requests) else _next(tool, kept)


def _answers(kept: dict[str, JsonValue], *, again: bool = True) -> Answers:
    responses = cast(dict[str, Any], kept["responses"])
    made: InputResponses = {key: ElicitResult.model_validate(each) for key, each in responses.items()}
    return Answers(made, cast(str | None, kept["state"]), cast(dict[str, JsonValue], kept["said"]), again)


def answered(tool: str, kept: JsonValue, answer: str) -> Answers | Asks:
    """Take an answer to the first question that has none; return all of them, or what is to be asked now."""
    if not isinstance(kept, dict):
        raise ConfigurationError(f"tool {tool!r}", "what it had asked was kept in a form that this version cannot read")
    requests, responses = cast(dict[str, Any], kept["requests"]), dict(cast(dict[str, Any], kept["responses"]))
    key = next(key for key in requests if key not in responses)
    try:
        responses[key] = _read(tool, ElicitRequest.model_validate(requests[key]), answer.strip())
    except ValueError as problem:
        return _next(tool, kept, str(problem))
    said = cast(dict[str, JsonValue], kept["said"]) | {digest(requests[key]): responses[key]}
    held: dict[str, JsonValue] = kept | {"responses": responses, "said": said}
    return _next(tool, held) if len(responses) < len(requests) else _answers(held, again=False)


def _next(tool: str, kept: dict[str, JsonValue], problem: str = "") -> Asks:
    requests, responses = cast(dict[str, Any], kept["requests"]), cast(dict[str, Any], kept["responses"])
    request = ElicitRequest.model_validate(next(each for key, each in requests.items() if key not in responses))
    before = f"That does not fit: {problem}. " if problem else ""
    params = request.params
    if isinstance(params, ElicitRequestURLParams):
        how = f'Go to {params.url} and answer "done" afterwards, or "{DECLINE}".'
        return Asks(question=f"{before}{tool} asks: {params.message} {how}", choices=("done", DECLINE), kept=kept)
    how, choices = _how(params)
    question = f"{before}{tool} asks: {params.message} {how}"
    return Asks(question=question, choices=choices, kept=kept, form=_shown(params))


def masked(asks: Asks, environment: Environment) -> Asks:
    """Return a question as a person may see it, without secrets; what is kept for the server stays as it was."""
    form = None if asks.form is None else cast(dict[str, JsonValue], environment.masked_json(asks.form))
    choices = tuple(environment.masked(each) for each in asks.choices)
    return replace(asks, question=environment.masked(asks.question), choices=choices, form=form)


def _shown(params: ElicitRequestFormParams) -> dict[str, JsonValue] | None:
    """Return a form of several fields as clients can show it; None where its schema has words that forms do not."""
    if len(_fields(params)) <= 1:
        return None
    try:
        return checked_form(cast(dict[str, JsonValue], params.requested_schema), "requestedSchema")
    except InvalidInput:
        return None


def _how(params: ElicitRequestFormParams) -> tuple[str, tuple[str, ...]]:
    """Say how a form is answered, and with what, where that is a list."""
    fields = _fields(params)
    refuse = _refusal(fields)
    if not fields:
        return f'Answer "yes" or "{refuse}".', ("yes", refuse)
    if len(fields) > 1:
        named = ", ".join(f"{name}: {_kind(field)}" for name, field in fields.items())
        return f'Answer with a JSON object ({named}), or "{_apart(refuse)}".', ()
    ((name, field),) = fields.items()
    among = tuple(map(str, _among(field)))
    about = field.get("description") or field.get("title") or name
    if among:
        return f'({about}) Answer one of: {", ".join(among)}; or "{refuse}".', (*among, refuse)
    if field.get("type") == "boolean":
        return f'({about}) Answer "yes" or "no"; or "{refuse}".', ("yes", "no", refuse)
    return f'({about}) Answer with {_kind(field)}; or "{_apart(refuse)}".', ()


def _fields(params: ElicitRequestFormParams) -> dict[str, dict[str, Any]]:
    return dict(params.requested_schema.get("properties") or {})


def _kind(field: dict[str, Any]) -> str:
    among = _among(field)
    if among:
        return f"one of {', '.join(map(str, among))}"
    return {"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}.get(
        str(field.get("type")), "a list"
    )


def _among(field: dict[str, Any]) -> tuple[JsonValue, ...]:
    """Return the values that a field lists; empty where it takes others too."""
    if "enum" in field:
        return tuple(field["enum"])
    titled = (*field.get("oneOf", ()), *field.get("anyOf", ()))
    return tuple(each["const"] for each in titled if "const" in each)


def _members(field: dict[str, Any]) -> tuple[JsonValue, ...]:
    """Return the values that the members of a list may have."""
    items = field.get("items")
    return _among(items) if isinstance(items, dict) else ()


def _refusal(fields: dict[str, dict[str, Any]]) -> str:
    """Return the word by which a person refuses: none that answers the one field that is asked for."""
    word = DECLINE
    if len(fields) == 1:
        (field,) = fields.values()
        taken = {_plain(str(each)) for each in (*_among(field), *_members(field))}
        while word in taken:
            word = f"/{word}"
    return word


def _apart(refusal: str) -> str:
    """Return the word as it is offered beside free words: one that cannot be meant for a call that waited (B22)."""
    return f"/{refusal}" if refusal == DECLINE else refusal


def _plain(text: str) -> str:
    return text.strip().rstrip(".!").casefold()


def _read(tool: str, request: ElicitRequest, answer: str) -> dict[str, Any]:
    """Return an answer as the protocol has it; raises `ValueError` with the reason for one that does not fit."""
    params, word = request.params, _plain(answer)
    if isinstance(params, ElicitRequestURLParams):
        if word not in _YES | _REFUSES:
            raise ValueError(f'answer "done" or "{DECLINE}"')
        return {"action": DECLINE if word in _REFUSES else "accept"}
    fields = _fields(params)
    if not fields:
        if word not in _YES | _NO | _REFUSES:
            raise ValueError(f'answer "yes" or "{DECLINE}"')
        return {"action": "accept", "content": {}} if word in _YES else {"action": DECLINE}
    content = _listed(fields, answer)
    if content is None:
        refusal = _refusal(fields)
        if word == refusal or (refusal == DECLINE and word in _REFUSES):
            return {"action": DECLINE}
        content = _content(fields, answer)
    problem = _held_to(tool, cast(dict[str, JsonValue], params.requested_schema), content)
    if problem is not None:
        raise ValueError(problem.partition("do not fit. ")[2].partition(" Its parameters:")[0].rstrip(".") or problem)
    return {"action": "accept", "content": content}


def _listed(fields: dict[str, dict[str, Any]], answer: str) -> dict[str, JsonValue] | None:
    """Return what one field gets by one of the values that it lists; None where the answer is none of them."""
    if len(fields) != 1:
        return None
    ((name, field),) = fields.items()
    for values, as_list in ((_among(field), False), (_members(field), True)):
        same = [each for each in values if str(each) == answer]
        alike = same or [each for each in values if _plain(str(each)) == _plain(answer)]
        if len(alike) == 1:
            return {name: alike if as_list else alike[0]}
    return None


def _held_to(tool: str, schema: dict[str, JsonValue], content: dict[str, JsonValue]) -> str | None:
    try:
        return JsonArguments(tool, schema).problem(content)
    except ConfigurationError:
        return None  # a schema that is none: the server is to judge


def _content(fields: dict[str, dict[str, Any]], answer: str) -> dict[str, JsonValue]:
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        return given
    if len(fields) > 1:
        raise ValueError(f"give a JSON object with {', '.join(fields)}")
    ((name, field),) = fields.items()
    match field.get("type"):
        case "boolean" if answer.rstrip(".!").lower() in _YES | _NO:
            return {name: answer.rstrip(".!").lower() in _YES}
        case "string" if isinstance(given, str):
            return {name: given}
        case "string" | "array" if _plain(answer) == "cancel" and not (_among(field) or _members(field)):
            raise ValueError(f"{answer!r} may be the answer or a refusal; to answer with it, write it in double quotes")
        case "string":
            return {name: answer}
        case "array" if given is None:
            return {name: [each.strip() for each in answer.split(",")]}
        case _:
            return {name: answer if given is None else given}
