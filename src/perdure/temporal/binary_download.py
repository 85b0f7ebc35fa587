"""Downloading one program out of an archive, by its digest: either the file of that digest is there, or nothing is.

Only https is spoken, besides http to this machine itself. All is read as a stream and bounded, and the file gets its
name only after its digest was right.
"""

import hashlib
import http.client
import os
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO

MEMBER = "temporal"
PROGRAM_BYTES_MAX = 512 * 1024 * 1024
"""Three times the size of today's binary: an archive that unpacks to more is not the one that was meant."""

SILENCE_MAX_S = 30.0
"""A host that sends nothing for this long is given up."""

CHUNK_BYTES = 1024 * 1024
PROGRAM_MODE = 0o700
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class DownloadError(Exception):
    """The program could not be had, or was not the one that was meant; nothing was kept."""


def download(url: str, sha256: str, target: Path) -> None:
    """Put the program of the gzipped tar archive at `url` to `target`, mode 0700, if its digest is `sha256`. Blocks.

    Concurrent downloads do not disturb each other: each writes a file of its own, and the last to finish names it.

    Raises:
        DownloadError: Unreachable, not such an archive, another digest, or the disk does not take it.
    """
    _refuse_plain(url)
    try:
        fd, partial = tempfile.mkstemp(dir=target.parent, prefix=".download-")
    except OSError as error:
        raise DownloadError(f"{target.parent} cannot be written: {error}") from error
    try:
        with os.fdopen(fd, "wb") as file:
            found = _unpack(url, file)
            if found != sha256:
                raise DownloadError(f"{url} has another content (SHA-256 {found}) than was written down ({sha256})")
            file.flush()
            os.fchmod(file.fileno(), PROGRAM_MODE)
            os.fsync(file.fileno())
        Path(partial).replace(target)
    except (OSError, EOFError, tarfile.TarError, urllib.error.URLError, http.client.HTTPException) as error:
        raise DownloadError(f"{url}: {error}") from error
    finally:
        Path(partial).unlink(missing_ok=True)


def _refuse_plain(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise DownloadError(f"{url} is not an https address")


class _StayOnHttps(urllib.request.HTTPRedirectHandler):
    """Redirects are held to the same rule as the first address."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _refuse_plain(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _unpack(url: str, file: IO[bytes]) -> str:
    hashed = hashlib.sha256()
    size = 0
    opener = urllib.request.build_opener(_StayOnHttps)
    with opener.open(url, timeout=SILENCE_MAX_S) as response, tarfile.open(fileobj=response, mode="r|gz") as archive:
        program = _member(archive, url)
        while data := program.read(CHUNK_BYTES):
            size += len(data)
            if size > PROGRAM_BYTES_MAX:
                raise DownloadError(f"{url} unpacks to more than {PROGRAM_BYTES_MAX} bytes")
            hashed.update(data)
            file.write(data)
    return hashed.hexdigest()


def _member(archive: tarfile.TarFile, url: str) -> IO[bytes]:
    for member in archive:
        if member.isfile() and member.name.removeprefix("./") == MEMBER:
            program = archive.extractfile(member)
            if program is not None:
                return program
    raise DownloadError(f"{url} holds no file {MEMBER!r}")
