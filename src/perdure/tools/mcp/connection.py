"""One connection to an MCP server, for one worker process and all tasks in it.

It is held by a task of its own, because what the SDK opens must be closed by whoever opened it, and calls come and go.
A connection that ended is made anew by the next call that needs it, and never because time has passed. Starts of a
server that does not live are held apart.

What the server lists is read when the connection is made, and again when the server says that it changed. Only so can a
call be refused whose tool is no longer what its task was told.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, Final

import httpx2
from mcp.client.client import Client, ConnectMode
from mcp.client.session import ClientRequestContext, ElicitationFnT, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    LoggingMessageNotificationParams,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import Unavailable
from perdure.core.limits import PROBLEM_BYTES_MAX
from perdure.core.mcp_limits import (
    MCP_CLOSE_S,
    MCP_CUT_OFF_S,
    MCP_END_HEARD_S,
    MCP_PAGES_MAX,
    MCP_RESTART_DELAY_FIRST_S,
    MCP_RESTART_DELAY_MAX_S,
    MCP_STEADY_S,
)

Dial = Callable[[Callable[[], None]], AbstractAsyncContextManager[tuple[Any, Any]]]
"""Reaches the server and gives its streams; the argument is told of their end."""

Listener = Callable[[str], None]
"""Takes what a server says of its work while a request is under way."""

FAILURES: Final = (MCPError, OSError, httpx2.HTTPError, ValidationError, ValueError, RuntimeError, ExceptionGroup)
"""What the SDK and its transports raise where a server cannot be reached or does not speak the protocol."""

_log = logging.getLogger(__name__)


class Live:
    """A connection while it lasts. `ended` is set when it does."""

    def __init__(self, client: Client, ended: asyncio.Event) -> None:
        self.client = client
        self.ended = ended
        self.tools: dict[str, Tool] = {}
        self.changed = True
        """Whether the server may list other tools than those that were read."""
        self._reading = asyncio.Lock()
        self._under_way: dict[object, Listener | None] = {}

    async def listed(self) -> dict[str, Tool]:
        """Return the server's tools by name, read again where they may have changed."""
        async with self._reading:
            while self.changed:
                self.changed = False
                try:
                    self.tools = {tool.name: tool for tool in await self._pages()}
                except BaseException:
                    self.changed = True
                    raise
        return self.tools

    async def _pages(self) -> list[Tool]:
        found: list[Tool] = []
        cursor: str | None = None
        if self.client.server_capabilities.tools is None:
            return found
        for _ in range(MCP_PAGES_MAX):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found
        raise ValueError(f"its list of tools has more than {MCP_PAGES_MAX} pages")

    @contextlib.contextmanager
    def heard_by(self, listener: Listener | None) -> Iterator[None]:
        """Let a request hear what the server says meanwhile, as long as no other is under way that it may be about.

        One without a listener counts, too. So does one that was cut off, for a while: the server may still be at it.
        """
        request = object()
        self._under_way[request] = listener
        try:
            yield
        except asyncio.CancelledError:
            self._linger()
            raise
        finally:
            del self._under_way[request]

    def _linger(self) -> None:
        gone = object()
        self._under_way[gone] = None
        asyncio.get_running_loop().call_later(MCP_CUT_OFF_S, self._under_way.pop, gone, None)

    def heard(self, text: str) -> None:
        """Hand a word of the server's to the one request under way. Of several nobody knows which it is about."""
        listener = next(iter(self._under_way.values())) if len(self._under_way) == 1 else None
        if listener is not None:
            listener(text)
        else:
            _log.info("an MCP server says: %s", text)


class Connection:
    """The one connection of a process to a server named `name`; `close` ends it.

    `elicit` answers questions that an older server puts in the middle of a call; by default it says that nobody can.
    `mode` is the SDK's: by default a server is asked which protocol it speaks.
    """

    def __init__(
        self,
        name: str,
        dial: Dial,
        within_s: float,
        masked: Callable[[str], str],
        elicit: ElicitationFnT | None = None,
        mode: ConnectMode = "auto",
    ) -> None:
        self.name = name
        self._dial = dial
        self.within_s = within_s
        self._masked = masked
        self._elicit = elicit or _not_now
        self._mode = mode
        self._live: Live | None = None
        self._holder: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._short_lives = 0
        self._opened_at_s = 0.0
        self._closed = False

    async def live(self) -> Live:
        """Return the connection, made now where there is none. Raises `Unavailable` when the server does not answer."""
        async with self._opening:
            if self._closed:
                raise Unavailable(f"the MCP server {self.name!r} was closed with its worker")
            if self._live is not None and not self._live.ended.is_set():
                return self._live
            await self._let_go()
            await asyncio.sleep(self._delay_s())
            return await self._open()

    async def listed(self) -> dict[str, Tool]:
        """Return the server's tools as they are now, over a new connection where the old one is found to have ended.

        Raises `Unavailable` when the server does not answer.
        """
        for last in (False, True):
            live = await self.live()
            try:
                async with asyncio.timeout(self.within_s):
                    return await live.listed()
            except FAILURES as error:
                if last or not await _found_ended(live, error):
                    raise Unavailable(f"the MCP server {self.name!r} {self.told(error)}") from error
        raise Unavailable(f"the MCP server {self.name!r} does not stay connected")

    def _delay_s(self) -> float:
        """How long to wait before the next start: nothing after a life that was long enough."""
        lived_s = asyncio.get_running_loop().time() - self._opened_at_s
        if self._live is not None and lived_s >= MCP_STEADY_S:
            self._short_lives = 0
        self._live = None
        if self._short_lives <= 1:
            return 0.0
        wanted_s = min(MCP_RESTART_DELAY_FIRST_S * 2.0 ** (self._short_lives - 2), MCP_RESTART_DELAY_MAX_S)
        return max(0.0, wanted_s - lived_s)

    async def _open(self) -> Live:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Live] = loop.create_future()
        self._opened_at_s = loop.time()
        self._short_lives += 1
        holder = asyncio.create_task(self._hold(opened), name=f"perdure: MCP server {self.name}")
        try:
            waits: list[asyncio.Future[Any]] = [opened, holder]
            async with asyncio.timeout(self.within_s):
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            self._live = opened.result() if opened.done() else None
        except TimeoutError as error:
            raise Unavailable(f"the MCP server {self.name!r} did not answer within {self.within_s:g} s") from error
        except FAILURES as error:
            cause = _first(error)
            if not (isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED):
                raise Unavailable(f"the MCP server {self.name!r} {self.told(error)}") from error
        finally:
            if self._live is None:
                await _ended(holder)
        if self._live is None:
            raise Unavailable(f"the MCP server {self.name!r} ended before it answered; its output says why")
        self._holder = holder
        return self._live

    async def _hold(self, opened: "asyncio.Future[Live]") -> None:
        """Open a connection, publish it, and keep it until it ends."""
        ended = asyncio.Event()
        try:
            async with self._connected(ended) as live:
                await live.listed()
                async with _watching(live):
                    opened.set_result(live)
                    await ended.wait()
        except FAILURES as error:
            if not opened.done():
                opened.set_exception(error)
                opened.exception()  # seen: whoever waited may be gone
            else:
                _log.warning("the connection to the MCP server %r ended: %s", self.name, self.told(error))
        finally:
            ended.set()

    @contextlib.asynccontextmanager
    async def _connected(self, ended: asyncio.Event) -> AsyncIterator[Live]:
        heard: list[Live] = []

        async def on_message(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                for live in heard:
                    live.changed = True

        async def on_log(params: LoggingMessageNotificationParams) -> None:
            for live in heard:
                live.heard(self._masked(f"{params.level}: {params.data}"))

        client = Client(
            self._dial(ended.set),
            cache=None,
            client_info=Implementation(name="perdure", version=version("perdure")),
            elicitation_callback=self._elicit,
            message_handler=on_message,
            logging_callback=on_log,
            log_level="info",
            mode=self._mode,
        )
        async with client:
            heard.append(Live(client, ended))
            yield heard[0]

    def told(self, error: BaseException) -> str:
        """Return what an error says, fit to be shown: without secrets, bounded."""
        first = _first(error)
        text = self._masked(safe_text(str(first) or type(first).__name__))
        return cut_text(f"failed: {text}", PROBLEM_BYTES_MAX, " [cut]")

    async def _let_go(self) -> None:
        """Let what held the last connection end; the SDK closes in order only where it is not cut off."""
        holder, self._holder = self._holder, None
        if holder is None:
            return
        if self._live is not None:
            self._live.ended.set()
        await asyncio.wait({holder}, timeout=MCP_CLOSE_S)
        await _ended(holder)

    async def close(self) -> None:
        """End the connection, and the server where it is a process of ours."""
        self._closed = True
        async with self._opening:
            await self._let_go()


async def _found_ended(live: Live, error: BaseException) -> bool:
    """Whether a connection has ended: one may learn it from a request before it hears of the end itself."""
    cause = _first(error)
    if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MCP_END_HEARD_S):
                await live.ended.wait()
    return live.ended.is_set()


def _first(error: BaseException) -> BaseException:
    """Return the error that a group of them began with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _not_now(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Say that nobody can be asked in the middle of a call: an older protocol has no way to go on after a restart.

    A server that speaks the newer one ends the call with its questions instead, and those are put to a person.
    """
    return ElicitResult(action="cancel")


@contextlib.asynccontextmanager
async def _watching(live: Live) -> AsyncIterator[None]:
    """Notice, while the connection lasts, that the server's tools may have changed."""
    tools = live.client.server_capabilities.tools
    if tools is None or not tools.list_changed:
        yield
        return
    watching = asyncio.create_task(_watch(live), name="perdure: changes of an MCP server")
    try:
        yield
    finally:
        await _ended(watching)


async def _watch(live: Live) -> None:
    """Listen where the protocol has it; older servers say it unasked. After a loss anything may have changed."""
    delay_s = MCP_RESTART_DELAY_FIRST_S
    while not live.ended.is_set():
        with contextlib.suppress(MCPError, SubscriptionLost, TimeoutError):
            try:
                async with live.client.listen(tools_list_changed=True) as changes:
                    delay_s = MCP_RESTART_DELAY_FIRST_S
                    live.changed = True  # between the reading and the listening nobody heard
                    async for _ in changes:
                        live.changed = True
            except ListenNotSupportedError:
                return
        live.changed = True
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, MCP_RESTART_DELAY_MAX_S)


async def _ended(task: "asyncio.Task[None]") -> None:
    """Tell a task of ours to end, and wait until it has."""
    task.cancel()
    await asyncio.wait({task})
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("%s has ended by a defect", task.get_name(), exc_info=error)
