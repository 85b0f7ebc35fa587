"""A served agent as this client sees it: the SDK's client, found by the agent's card.

The SDK's client does all that is needed. It passes headers through, so a stream is resumed by `Last-Event-ID` and a
message sent under an `Idempotency-Key`; it drops the SSE ids, but the numbers stand in the metadata too. Refused: a
client of our own over httpx, which would have to learn two bindings and two versions.

Which binding and version is spoken says the card. gRPC is left out: whoever serves it serves HTTP too.
"""

import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client, ClientCallContext, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.client.interceptors import ClientCallInterceptor
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from a2a.utils.constants import TransportProtocol

from perdure.a2a import extension
from perdure.cli.client.asking import Extended
from perdure.cli.client.credentials import interceptors_for
from perdure.cli.client.refusals import Lost, sorted_errors
from perdure.core import client_limits
from perdure.core.errors import ConfigurationError, InvalidInput, PerdureError, Unavailable

BINDINGS: Final = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]


class Server:
    """One agent at one address.

    `keeps_keys`: it knows a message that comes again. `numbers`: it numbers a task's events and resumes after any.
    """

    def __init__(self, url: str, card: AgentCard, client: Client, asking: Client, extended: Extended) -> None:
        self.url = url
        self.card = card
        self.keeps_keys = any(each.uri == extension.URI for each in card.capabilities.extensions)
        self.streams = card.capabilities.streaming
        self.numbers = self.keeps_keys and self.streams
        self._client = client
        self._extended = extended
        self._asking = asking  # the SDK streams each send of a client that can, also one that is not to wait

    async def send(self, request: SendMessageRequest, key: str) -> AsyncGenerator[StreamResponse, None]:
        """Send a message; yield what follows, or the one answer where the server does not stream."""
        streams = self.streams and not request.configuration.return_immediately
        context = self._context({"Idempotency-Key": key}, None if streams else client_limits.ANSWER_S)
        with sorted_errors():
            sent = (self._client if streams else self._asking).send_message(request, context=context)
            responses = cast(AsyncGenerator[StreamResponse, None], sent)
            async with contextlib.aclosing(responses):
                async for response in responses:
                    yield response

    async def subscribe(self, task_id: str, after: int | None) -> AsyncGenerator[StreamResponse, None]:
        """Yield the task as of event `after`, and every event after it."""
        context = self._context({} if after is None else {"Last-Event-ID": str(after)})
        with sorted_errors():
            request = SubscribeToTaskRequest(id=task_id)
            responses = cast(AsyncGenerator[StreamResponse, None], self._client.subscribe(request, context=context))
            async with contextlib.aclosing(responses):
                async for response in responses:
                    yield response

    async def task(self, task_id: str, history_length: int | None = 0) -> Task:
        """Return the task as it is now."""
        with sorted_errors():
            request = GetTaskRequest(id=task_id, history_length=history_length)
            return await self._client.get_task(request, context=self._context({}))

    async def cancel(self, task_id: str) -> Task:
        """Cancel the task; return it as it is then."""
        context = self._context({}, answer_s=client_limits.ANSWER_S)
        with sorted_errors():
            return await self._client.cancel_task(CancelTaskRequest(id=task_id), context=context)

    async def extended(self, name: str, **params: str) -> dict[str, object]:
        """Return the result of an operation of our extension; raises `InvalidInput` where the server has none."""
        return await self._extended.ask(name, self._context({}), **params)

    async def tasks(self, limit: int, page_token: str) -> ListTasksResponse:
        """Return a page of tasks, each with its latest message."""
        request = ListTasksRequest(page_size=limit, page_token=page_token, history_length=1)
        try:
            with sorted_errors():
                return await self._client.list_tasks(request, context=self._context({}))
        except NotImplementedError as error:
            raise InvalidInput("URL", f"{self.url} speaks A2A 0.3, which has no list of tasks") from error

    def _context(self, headers: dict[str, str], answer_s: float | None = None) -> ClientCallContext:
        parameters = ServiceParametersFactory.create_from(
            headers, [with_a2a_extensions([extension.URI])] if self.keeps_keys else []
        )
        return ClientCallContext(service_parameters=parameters, timeout=answer_s)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Server]:
    """Connect to the agent at `url`.

    Raises `InvalidInput` for what is no address or no agent, `Unavailable` where nobody answers: the first contact is
    not tried again, because what was not given yet cannot be lost, and an address may be mistyped.
    """
    checked_url(url)
    async with httpx.AsyncClient(timeout=_timeout(client_limits.CARD_S)) as http:
        card = await _card(http, url)
        try:
            shown = list(interceptors_for(url, card, os.environ))
            client, asking = (_client(http, card, shown, streaming) for streaming in (True, False))
        except ValueError as error:
            raise InvalidInput("URL", f"the agent at {url} speaks neither JSON-RPC nor HTTP+JSON: {error}") from error
        server = Server(url, card, client, asking, Extended(url, card, http, shown))
        http.timeout = _timeout(client_limits.SILENCE_S if server.numbers else client_limits.ANSWER_S)
        yield server


def checked_url(url: str) -> str:
    """Return an address; raises `InvalidInput` for what is none."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput("URL", f"{url!r} is no address: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidInput("URL", f"{url!r} must begin with http:// or https:// and name a host")
    return url


def _client(
    http: httpx.AsyncClient, card: AgentCard, interceptors: list[ClientCallInterceptor], streaming: bool
) -> Client:
    config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=list(BINDINGS))
    return ClientFactory(config).create(card, interceptors)


async def _card(http: httpx.AsyncClient, url: str) -> AgentCard:
    try:
        with sorted_errors():
            return await A2ACardResolver(http, url).get_agent_card()
    except Lost as error:
        raise Unavailable(f"{url} does not answer: {error}; nothing was sent") from error
    except ConfigurationError:
        raise
    except PerdureError as error:
        cause = error.__cause__
        why = str(cause) if isinstance(cause, AgentCardResolutionError) else str(error)
        raise InvalidInput("URL", f"there is no agent at {url}: {' '.join(why.split())}") from error


def _timeout(read_s: float) -> httpx.Timeout:
    return httpx.Timeout(client_limits.CONNECT_S, read=read_s)
