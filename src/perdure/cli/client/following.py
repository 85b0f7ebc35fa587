"""Following a task on a server until it is known what came of it, over every loss of the connection.

A message is given until the server has answered once; from then on there is a task, and it is subscribed to. What was
seen stays seen: after a loss the stream goes on behind the last number. A server that does not number gives the task as
it stands instead, and what lay between is lost to this client; one that does not stream is asked now and then.

A message is only given again where that cannot make two of it: it never reached the server, or the server knows
messages that come again (P1). Otherwise it is said that nobody knows (P4).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from a2a.types.a2a_pb2 import SendMessageRequest, StreamResponse, Task

from perdure.cli.client.ends import End, Ending, StateEnd
from perdure.cli.client.order import InOrder
from perdure.cli.client.patience import Patience
from perdure.cli.client.refusals import Lost, Refusal
from perdure.cli.client.said import TERMINAL, Said, answer_of, said_in, said_of_task
from perdure.cli.client.server import Server
from perdure.cli.client.telling import Telling
from perdure.cli.output import note
from perdure.core import client_limits
from perdure.core.errors import Unavailable


@dataclass(frozen=True)
class Given:
    """A message to give, under its idempotency key."""

    request: SendMessageRequest
    key: str


class Follower:
    """Follows one task. `task_id` is empty until the server has named it, `seen` the number of the last event."""

    def __init__(
        self,
        server: Server,
        ending: Ending,
        telling: Telling,
        patience: Patience,
        *,
        given: Given | None = None,
        task_id: str = "",
        after: int = 0,
    ) -> None:
        self.task_id = task_id
        self._server = server
        self._ending = ending
        self._telling = telling
        self._patience = patience
        self._to_give = given
        self._hands_over = given is not None and given.request.configuration.return_immediately
        self._order = InOrder(after)
        self._streams = server.streams
        self._latest = 0
        self._last: Said | None = None
        self._heard = False

    @property
    def seen(self) -> int:
        """The number of the last event that was seen; 0 where the server does not number."""
        return self._order.seen if self._server.numbers else 0

    @property
    def accepted(self) -> bool:
        """Whether the server has answered: nothing is to be given any more."""
        return self._to_give is None

    @property
    def may_repeat(self) -> bool:
        """Whether the server knows a message that comes again."""
        return self._server.keeps_keys

    async def until_end(self) -> End:
        """Return what came of it, or that it was taken in where the request asks for no more.

        Raises `Unavailable` when the server stays away, or has forgotten the task; `Refusal` for what it refuses.
        """
        while True:
            try:
                end = await self._listen()
                if end is not None:
                    return end
                lost = Lost("the stream ended", reached=True)
            except Lost as error:
                lost = error
            if self._to_give is not None and lost.reached and not self._server.keeps_keys:
                raise Unavailable(
                    f"{lost}, and it is not known whether {self._server.url} took the message in; it does not know a "
                    f"message that comes again, so it was not sent again: see `perdure tasks {self._server.url}`"
                ) from lost
            if self._patience.tries == 0:
                note(f"{self._server.url}: {lost}; trying again" + (f" after event {self.seen}" if self.seen else ""))
            await self._patience.wait(str(lost), lost.retry_after_s)

    async def _listen(self) -> End | None:
        try:
            async with aclosing(self._responses()) as responses:
                async for response in responses:
                    end = await self._take(response)
                    if end is not None:
                        return end
        except Refusal as refusal:
            return await self._after(refusal)
        # A stream without numbers that ended on its own: what it said last is how it stands.
        return None if self._server.numbers else self._ending.rest

    def _responses(self) -> AsyncGenerator[StreamResponse, None]:
        if self._to_give is not None:
            return self._server.send(self._to_give.request, self._to_give.key)
        if self._streams:
            return self._server.subscribe(self.task_id, self._order.seen if self._server.numbers else None)
        return self._asked()

    async def _asked(self) -> AsyncGenerator[StreamResponse, None]:
        pause_s = client_limits.POLL_FIRST_S
        while True:
            yield StreamResponse(task=await self._server.task(self.task_id))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, client_limits.POLL_MAX_S)

    async def _take(self, response: StreamResponse) -> End | None:
        said = said_in(response)
        self._to_give, self._heard = None, True
        self._patience.answered()
        if said.task_id and not self.task_id:
            self.task_id = said.task_id
            self._telling.task(self.task_id)
        if said.kind == "message":
            self._telling.event(said)
            return End("answered", answer=said.text)
        if self._hands_over:
            return End("accepted", said.state)
        return await (self._take_numbered(said) if self._server.numbers else self._take_plain(said))

    async def _take_plain(self, said: Said) -> End | None:
        if said != self._last:
            self._patience.progressed()
        self._last = said
        for each in self._order.take(said):
            self._telling.event(each)
        self._ending.take(said)
        return await self._whole(self._ending.end)

    async def _take_numbered(self, said: Said) -> End | None:
        if said.kind == "task":
            self._order.start(said)
            self._ending.take(said)
            return await self._resting()
        for each in self._order.take(said):
            self._patience.progressed()
            self._telling.event(each)
            self._ending.take(each)
            if self._ending.end is not None:
                return self._ending.end
        if self._order.gapes:
            raise Lost(f"events after {self._order.seen} are missing", reached=True)
        return await self._resting()

    async def _resting(self) -> End | None:
        """Return how the task stands if that is how it stands now, and not only as far as the log was read."""
        rest = self._ending.rest
        if rest is None or self._latest > self._order.seen:
            return None
        self._latest = said_of_task(await self._server.task(self.task_id)).number or 0
        return rest if self._latest <= self._order.seen else None

    async def _after(self, refusal: Refusal) -> End | None:
        """The server refuses to stream: the task has ended, or is asked for from now on."""
        if self._to_give is not None or not self.task_id:
            raise refusal
        if refusal.unknown_task:
            if self._heard:
                raise Unavailable(f"the server does not know task {self.task_id} any more: it has forgotten it")
            raise refusal
        task = await self._server.task(self.task_id, None)
        self._heard = True
        if said_of_task(task).state in TERMINAL:
            return _as_it_ended(task)
        if self._server.numbers:
            raise refusal
        self._streams = False
        return None

    async def _whole(self, end: End | None) -> End | None:
        """Return the end with the whole answer: after a loss of the connection only the server has it."""
        if end is None or end.outcome != "answered" or not self.task_id:
            return end
        try:
            return replace(end, answer=answer_of(await self._server.task(self.task_id, None)) or end.answer)
        except (Lost, Refusal):
            return end  # what was heard is all there is


def _as_it_ended(task: Task) -> End | None:
    ending = StateEnd(sent=False)
    ending.take(said_of_task(task))
    end = ending.end
    return end if end is None or end.outcome != "answered" else replace(end, answer=answer_of(task))
