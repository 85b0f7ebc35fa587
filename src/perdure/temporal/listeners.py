"""Which TCP ports a process listens on, as Linux tells it."""

import sys
from pathlib import Path

LISTEN_STATE = "0A"


def listeners(pid: int) -> set[tuple[str, int]] | None:
    """Return (address, port) of each listening socket of process `pid`; None where that cannot be seen.

    Addresses are in the kernel's hexadecimal form: 127.0.0.1 is `0100007F` on a little-endian machine.
    """
    if sys.platform != "linux":
        return None
    try:
        sockets = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [row.split() for name in ("tcp", "tcp6") for row in _rows(Path(f"/proc/{pid}/net/{name}"))]
    except OSError:
        return None
    found = set()
    for row in rows:
        local, state, inode = row[1], row[3], row[9]
        if state == LISTEN_STATE and f"socket:[{inode}]" in sockets:
            address, port = local.rsplit(":", 1)
            found.add((address, int(port, 16)))
    return found


def listens(pid: int, port: int) -> bool | None:
    """Say whether process `pid` listens on `port`; None where that cannot be seen."""
    found = listeners(pid)
    return None if found is None else any(port == each for _, each in found)


def _rows(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []
