"""A line between a worker and its Temporal that can be cut and slowed.

A cut line is either torn (connections are reset, new ones refused) or dead (nothing arrives any more, and nobody is
told). A mended one gives what it held back; a slow one takes its time for each piece.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal

PIECE_BYTES = 64 * 1024

How = Literal["torn", "dead"]


class Line:
    """Connections to one target. Get one from `line_to`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._whole = asyncio.Event()
        self._whole.set()
        self._torn = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.slow_s = 0.0
        self.carried_bytes = 0
        self.address = ""

    def cut(self, how: How) -> None:
        self._whole.clear()
        self._torn = how == "torn"
        for writer in list(self._writers) if self._torn else []:
            writer.transport.abort()

    def mend(self, slow_s: float) -> None:
        """Let it carry again, each piece so many seconds later."""
        self.slow_s = slow_s
        self._torn = False
        self._whole.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._torn:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        for pump in (self._pump(reader, far_writer), self._pump(far_reader, writer)):
            task = asyncio.create_task(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while piece := await reader.read(PIECE_BYTES):
                await self._whole.wait()
                if self.slow_s:
                    await asyncio.sleep(self.slow_s)
                self.carried_bytes += len(piece)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # the other side is gone, and this one goes with it
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def close(self) -> None:
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


@contextlib.asynccontextmanager
async def line_to(address: str) -> AsyncIterator[Line]:
    """Give a line to `host:port`; its `address` is what to connect to."""
    host, _, port = address.rpartition(":")
    line = Line(host, int(port))
    server = await asyncio.start_server(line.connected, "127.0.0.1", 0)
    line.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        await line.close()
