"""One request at the gate, from its answer's side and from its front door's side.

The answer knows whether it has begun and ended, so that a refusal is never sent into the middle of one. The inner side
gives the front door the body as it was read, and then what comes after a body: the client's leaving, or the end of its
credential, which looks the same.
"""

import asyncio

from a2a.utils.errors import A2AError
from starlette.types import Message, Receive, Scope, Send

from perdure.a2a.identity import Credential
from perdure.a2a.refusals import RefusedError, refusal
from perdure.core.errors import Unavailable


class Answer:
    """The answer to one request. `request_id` is JSON-RPC's, once it is known; `over` why its credential is no more."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.path: str = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        self.json_rpc = self.path == "/" and scope["method"] == "POST"
        self.request_id: str | int | None = None
        self.over: RefusedError | None = None
        self._scope = scope
        self._send = send
        self._begun = False
        self._done = False

    async def send(self, message: Message) -> None:
        """Pass a message on. An answer that had not begun when its credential ended is that refusal instead."""
        if self._done:
            return
        if self.over is not None and not self._begun:
            await self.refuse(self.over)
            return
        self._begun = True
        self._done = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, error: A2AError, headers: dict[str, str] | None = None) -> None:
        """Answer with the refusal, if nothing was answered yet."""
        if self._begun:
            return
        self._begun = self._done = True
        answer = refusal(error, json_rpc=self.json_rpc, request_id=self.request_id, headers=headers)
        await answer(self._scope, _nothing, self._send)

    async def end(self) -> None:
        """End an answer that its sender left open, so that its reader sees an end and not a cut."""
        if self._begun and not self._done:
            self._done = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class Inner:
    """What the front door receives."""

    def __init__(
        self, body: bytes, receive: Receive, answer: Answer, credential: Credential | None, recheck_s: float
    ) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self._answer = answer
        self._credential = credential
        self._recheck_s = recheck_s

    async def receive(self) -> Message:
        """Return the next message."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._credential is None:
            return await self._receive()
        leaving = asyncio.ensure_future(self._receive())
        try:
            while not leaving.done():
                await asyncio.wait({leaving}, timeout=self._recheck_s)
                if not leaving.done() and not await self._still_good(self._credential):
                    return {"type": "http.disconnect"}
            return leaving.result()
        finally:
            leaving.cancel()

    async def _still_good(self, credential: Credential) -> bool:
        if self._answer.over is None:
            try:
                await credential.principal()
            except RefusedError as error:
                self._answer.over = error
            except Unavailable:
                return True  # it cannot be told now, and was good a moment ago
        return self._answer.over is None


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
