"""One operation of an HTTP service as a tool."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from perdure.core import http_limits
from perdure.core.agent import ToolSpec
from perdure.core.artifacts import Returned, WithFiles
from perdure.core.digests import safe_json
from perdure.core.errors import BegunError, InvalidInput, OutcomeUnknown, ToolError, Unavailable
from perdure.core.ports import Call, Check, ToolSchema
from perdure.tools.check_answers import ANSWERS, check_of, key_argument
from perdure.tools.environment import Environment
from perdure.tools.http.answers import json_of, told, value_of
from perdure.tools.http.client import Answer, Client, Lost, NotSent, Origin
from perdure.tools.http.operations import KEY_HEADER, Operation
from perdure.tools.http.outcomes import Meaning, is_absent, is_good, meaning, retry_after_s
from perdure.tools.http.requests import OWN_HEADERS, Request, Unwritable, written
from perdure.tools.json_arguments import JsonArguments

_CHECK_SHARE: Final = 0.3
"""Of a tool's timeout: under what an attempt gives its check, so that this one says why it does not know."""


_REACH_SHARE: Final = 0.2
"""Of a tool's timeout: within what somebody answers for its service, before an `idempotent` call is begun."""


class ServiceFailed(BegunError):
    """The service did not do a call that may be made again, or nobody knows whether it did."""


@dataclass(frozen=True)
class Service:
    """Where an operation's requests go and what goes with each: the operator's headers, with their secrets."""

    client: Client
    base: str
    headers: Mapping[str, str]
    environment: Environment


@dataclass(frozen=True)
class Asking:
    """The operation that says what became of a key, and where it is asked."""

    operation: Operation
    service: Service


class HttpTool:
    """An operation as a tool; made by `OpenApiTools`."""

    def __init__(
        self, spec: ToolSpec, operation: Operation, service: Service, asking: Asking | None, settle_s: float
    ) -> None:
        self._spec = spec
        self._operation = operation
        self._service = service
        self._asking = asking
        self._settle_s = settle_s
        self._arguments = JsonArguments(spec.name, operation.schema)
        self._schema = ToolSchema(name=spec.name, description=operation.description, parameters=operation.schema)

    def __repr__(self) -> str:
        return (
            f"<tool {self._spec.name} ({self._spec.effect}), {self._operation.method.upper()} {self._operation.path}>"
        )

    @property
    def spec(self) -> ToolSpec:
        """What the workflow records of the tool."""
        return self._spec

    @property
    def schema(self) -> ToolSchema:
        """What the model sees of the tool."""
        return self._schema

    @property
    def settle_s(self) -> float:
        """Seconds between the end of a call and its check; 0 without a check."""
        return 0.0 if self._asking is None else self._settle_s

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments do not fit the operation, in words that help a model, or None."""
        problem = self._arguments.problem(arguments)
        if problem is not None:
            return problem
        try:
            _written(self._operation, self._service, arguments)
        except Unwritable as error:
            return f"Not begun: the arguments of {self._spec.name} do not fit. {error}."
        return None

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return those arguments that the operation declares: it may ignore the others; see `Reads`."""
        return self._arguments.declared(arguments)

    async def ready(self, registered: str | None) -> str:
        """Return an empty text once the service can be reached, for a call that the workflow would make again.

        Else each attempt would have begun although nothing was sent, and what the last one came to would be in doubt.
        A `once` call tries again by itself, and nobody asks what a `read` came to.

        Raises `Unavailable` where nobody answers.
        """
        del registered
        if self._spec.effect != "idempotent":
            return ""
        try:
            await self._service.client.reach(self._service.base, self._spec.timeout_s * _REACH_SHARE)
        except InvalidInput:
            return ""  # `invoke` says so: another attempt would end the same
        except Unavailable as error:
            text = f"nothing was sent to the service: {error}"
            raise Unavailable(self._service.environment.masked(text)) from error
        return ""

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> Returned:
        """Send the request once and return what the service answered.

        Raises:
            ToolError: It did not happen, for the reason that is told (`outcomes.py`).
            ServiceFailed: Nobody knows whether it did, and it may be made again.
            OutcomeUnknown: Nobody knows whether it did, and it must not be made again.
        """
        try:
            request = _written(self._operation, self._service, arguments)
        except Unwritable as error:
            raise ToolError(f"Not begun: {error}.") from error
        if self._spec.effect != "read":
            request = request.with_headers({KEY_HEADER: call.idempotency_key})
        masked = self._service.environment.masked
        try:
            answer = await self._sent(request)
        except NotSent as error:
            if self._spec.effect == "once" or error.final:
                raise ToolError(masked(f"Not done: nothing was sent to the service: {error}.")) from error
            raise ServiceFailed(masked(f"nothing was sent to the service: {error}")) from error
        except Lost as error:
            raise self._left_open(call, f"the request was sent, and no answer came: {masked(str(error))}") from error
        said = meaning(answer.status, self._spec.effect, request.method, call.attempt, answer.body)
        if said == "done":
            return self._value(answer, request.method)
        raise self._failure(said, answer, call)

    async def check(self, call: Call) -> Check:
        """Ask the check's operation what became of the call's key.

        Its answer is read by `check_answers`. Where the key stands in the path, the answer may also be plain: what is
        found happened, with that result, and what is not found did not happen so far.
        """
        if self._asking is None:
            return Check.unknown()
        operation, service = self._asking.operation, self._asking.service
        argument = None if operation.takes_key else key_argument(operation.schema)
        arguments: dict[str, JsonValue] = {} if argument is None else {argument: call.idempotency_key}
        request = _written(operation, service, arguments)
        if operation.takes_key:
            request = request.with_headers({KEY_HEADER: call.idempotency_key})
        answer = await self._asked(request, service.client)
        said = service.environment.masked_json(json_of(answer))
        found = check_of(said) if is_good(answer.status) else None
        if found is not None:
            return found
        by_path = any(p.argument == argument and p.place == "path" for p in operation.parameters)
        if by_path and is_good(answer.status) and said is not None:
            return Check.happened(said)
        if by_path and is_absent(answer.status):
            return Check.not_yet()
        text = told(answer, service.environment.masked)
        raise ServiceFailed(f"{text}, where {operation.name} should have said {ANSWERS}")

    async def _sent(self, request: Request) -> Answer:
        """Send it; a `once` call that nothing was sent of is tried again here, for the workflow never would."""
        reached = _REACH_SHARE if self._spec.effect == "idempotent" else 0.0
        within_s = self._spec.timeout_s * (http_limits.RETRY_WITHIN_SHARE - reached)
        tries = http_limits.CONNECT_TRIES_MAX if self._spec.effect == "once" else 1
        pause_s = http_limits.CONNECT_PAUSE_S
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while True:
            try:
                return await self._service.client.send(request, until - loop.time(), self._spec.effect)
            except NotSent as error:
                tries -= 1
                if tries < 1 or error.final or loop.time() + pause_s >= until:
                    raise
                try:
                    await asyncio.sleep(pause_s)
                except asyncio.CancelledError:
                    raise error from None  # told to stop, and nothing was sent
            pause_s *= 2

    async def _asked(self, request: Request, client: Client) -> Answer:
        """Ask until there is an answer, or the time for it is over: a service that died may be starting again.

        As a read: a check may be asked again whatever its method, its rules say so.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._spec.timeout_s * _CHECK_SHARE
        pause_s = http_limits.CONNECT_PAUSE_S
        while True:
            try:
                answer = await client.send(request, until - loop.time(), "read")
                if meaning(answer.status, "read", request.method, 1) != "again" or loop.time() + pause_s >= until:
                    return answer
            except (NotSent, Lost) as error:
                final = isinstance(error, NotSent) and error.final
                if final or loop.time() + pause_s >= until:
                    raise
            await asyncio.sleep(pause_s)
            pause_s *= 2

    def _value(self, answer: Answer, method: str) -> Returned:
        value = value_of(answer, method, self._operation.name)
        return value if isinstance(value, WithFiles) else self._service.environment.masked_json(value)

    def _failure(self, said: Meaning, answer: Answer, call: Call) -> Exception:
        text = told(answer, self._service.environment.masked)
        after_s = retry_after_s(answer.headers)
        if said != "refused":
            return self._left_open(call, text, after_s)
        told_after = "" if after_s is None else f" It asks to wait {after_s:g} s."
        earlier = ""
        if self._spec.effect == "idempotent" and call.attempt > 1:
            earlier = " An earlier attempt of this call may have taken effect."
        return ToolError(f"Not done: {text}.{told_after}{earlier}")

    def _left_open(self, call: Call, text: str, after_s: float | None = None) -> Exception:
        if self._spec.effect == "once":
            return OutcomeUnknown(call.idempotency_key, text)
        return ServiceFailed(text, retry_after_s=after_s)


def _written(operation: Operation, service: Service, arguments: dict[str, JsonValue]) -> Request:
    safe = safe_json(arguments)
    request = written(operation, service.base, safe if isinstance(safe, dict) else {})
    _refuse_elsewhere(request.url, service.base)
    # The operator's headers win over the document's: none of those is offered to a model.
    return Request(request.method, request.url, OWN_HEADERS, request.body).with_headers(
        request.headers, service.headers
    )


def _refuse_elsewhere(url: str, base: str) -> None:
    """Raise `Unwritable` for an address at another host than the one that the operator's headers are for."""
    try:
        there = Origin.of(url)
    except ValueError as error:
        raise Unwritable(f"they make an address that cannot be sent to: it {error}") from error
    if there != Origin.of(base):
        raise Unwritable(f"they make an address at {there}, and requests go to {Origin.of(base)} alone")
