"""Moments at which a test can kill the orders server: around an effect and around its answer.

`PERDURE_DEMO_DIE` names them, as in `applied:ship_replacement`, several separated by commas; a server that has it kills
itself there, once over all processes: the one that dies creates a file in `PERDURE_DEMO_DIE_ONCE`, a folder, first.

    before     the call has arrived, and the world was not asked
    applied    the world has applied the call, and nothing was answered
    answered   the answer has been written
"""

import io
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

DIE: Final = "PERDURE_DEMO_DIE"
ONCE: Final = "PERDURE_DEMO_DIE_ONCE"


class Dying:
    """Kills this process at the moments that its environment names; with none it does nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._moments = tuple(filter(None, environment.get(DIE, "").split(",")))
        self._once = Path(environment.get(ONCE, "."))
        self._after_answer = ""

    def reach(self, moment: str, tool: str) -> None:
        """Say that this moment of a call was reached; does not return where the process dies."""
        named = f"{moment}:{tool}"
        if named in self._moments:
            self._die(named)

    def answering(self, tool: str) -> None:
        """Say that the next line that is written is the answer of this tool."""
        named = f"answered:{tool}"
        if named in self._moments:
            self._after_answer = named

    def serve(self, server: MCPServer) -> None:
        """Serve over stdio, watching what is written where a moment needs it."""
        if self._moments:
            anyio.run(self._watched, server)
        else:
            server.run("stdio")

    async def _watched(self, server: MCPServer) -> None:
        dying = self

        class Watched(io.TextIOWrapper):
            def flush(self) -> None:
                super().flush()
                if dying._after_answer:
                    dying._die(dying._after_answer)

        written = anyio.wrap_file(Watched(sys.stdout.buffer, encoding="utf-8"))
        inner = server._lowlevel_server  # noqa: SLF001 - the SDK's server takes no stream of one's own
        async with stdio_server(stdout=written) as (reading, writing):
            await inner.run(reading, writing, inner.create_initialization_options())

    def _die(self, named: str) -> None:
        self._after_answer = ""
        try:
            os.close(os.open(self._once / named, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
