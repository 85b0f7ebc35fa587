"""The channel of one machine: a socket for each process that follows, in a private folder beside the SQLite file.

Who listens is who has a socket there. One whose process was killed refuses the next datagram and is removed by its
sender. Only the file's owner reaches the folder, so that nobody else reads drafts or makes some up.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from perdure.core import limits

_ADDRESS_BYTES_MAX: Final = 100
"""A socket's address has 104 to 108 bytes; data folders may be deeper than that."""

_DESCRIPTORS: Final = Path("/proc/self/fd")
"""Where Linux has short names for folders that are open."""


class LocalChannel:
    """Datagrams between the processes that have one SQLite store open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sending: socket.socket | None = None
        self._names: tuple[str, ...] = ()
        self._read_at_ns = -1
        self._descriptor: int | None = None
        self._listening: socket.socket | None = None
        self._name = ""
        self._closed = False
        self._lock = threading.Lock()  # what was committed is told from the thread that committed it

    def peers(self) -> tuple[str, ...]:
        """Return the sockets in the folder but this process's own."""
        with self._lock:
            try:
                changed_at_ns = self._folder.stat().st_mtime_ns
                if changed_at_ns != self._read_at_ns:
                    found = sorted(os.listdir(self._folder))
                    self._read_at_ns, self._names = changed_at_ns, tuple(name for name in found if name != self._name)
            except OSError:
                return ()  # nobody has listened here yet
            return self._names

    def send(self, peer: str, data: bytes) -> bool:
        """Send it to that socket; False when its process has not read what came before."""
        with self._lock:
            if self._closed:
                return True
            try:
                if self._sending is None:
                    self._sending = _datagrams()
                self._sending.sendto(data, self._address(peer))
            except (ConnectionRefusedError, FileNotFoundError):
                self._forget(peer)
            except OSError:
                return False
            return True

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Open this process's socket. Where that cannot be done, nothing is heard."""
        if self._listening is not None or self._closed:
            return
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        listening = _datagrams()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with self._lock:
                address = self._address(self._name)
            listening.bind(address)
        except OSError:
            listening.close()
            return
        self._listening = listening
        asyncio.get_running_loop().add_reader(listening, self._read, listening, heard)

    async def close(self) -> None:
        """Remove this process's socket."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._forget(self._name)
        with self._lock:
            self._closed = True
            if self._sending is not None:
                self._sending.close()
            if self._descriptor is not None:
                os.close(self._descriptor)

    def _read(self, listening: socket.socket, heard: Callable[[bytes], None]) -> None:
        for _ in range(limits.DATAGRAMS_AT_ONCE_MAX):
            try:
                data = listening.recv(limits.DATAGRAM_BYTES_MAX)
            except OSError:
                return
            heard(data)

    def _address(self, name: str) -> str:
        whole = str(self._folder / name)
        if len(os.fsencode(whole)) <= _ADDRESS_BYTES_MAX:
            return whole
        if self._descriptor is None:
            self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return str(_DESCRIPTORS / str(self._descriptor) / name)

    def _forget(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._folder / name).unlink()


def _datagrams() -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.setblocking(False)
    return found
