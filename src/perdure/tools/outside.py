"""Connections to addresses that were looked at: the network beneath an HTTP client.

The name is looked up within the attempt, checked, and connected to as it was checked; TLS still asks for the name. No
proxy of this process's environment is asked: it would lead elsewhere.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence

import httpcore

from perdure.core.errors import Unavailable
from perdure.tools.addresses import Address, looked_up

Checked = Callable[[str, int, Sequence[Address]], None]
"""Takes host, port and all that the host leads to; raises for what may not be connected to."""


class Outside(httpcore.AsyncNetworkBackend):
    """Connects to what a name leads to, once `check` has seen all of it.

    Raises `Unavailable` where nobody answers, and whatever `check` raises. Nothing was sent then.

    Args:
        check: Called before each connection.
        connect_timeout_s: For one address; a name may have several, and the next one needs time too.
    """

    def __init__(self, check: Checked, connect_timeout_s: float) -> None:
        self._check = check
        self._connect_timeout_s = connect_timeout_s
        self._net = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Look the name up once, check all of it, and connect to the first address that answers."""
        bare = host.strip("[]")
        addresses = await looked_up(bare, port)
        self._check(bare, port, addresses)
        failed: Exception = Unavailable(f"the name {host!r} leads nowhere")
        for address in addresses:
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._net.connect_tcp(str(address), port, self._connect_timeout_s)
            failed = Unavailable(f"nobody answers at port {port}")
        raise failed

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
