"""Sealing what a push configuration holds: its address, its token, its credentials.

All of it is one sealed text, since an address often carries a key of its own. AES-GCM, with a fresh nonce each time;
the task's and the configuration's ids are bound in, so that a sealed text put into another row does not open.

The key comes from the environment (`PERDURE_SECRETS_KEY`), or is a file in the data folder, made once and private. A
file is a key for this machine alone: where several hosts share a store the environment has to name one for all. The
key's id, a digest, stands beside what it sealed, so that nobody tries with another.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from perdure.app.settings import SECRETS_FILE, SECRETS_KEY, Settings
from perdure.core.errors import ConfigurationError, Diverged
from perdure.temporal.private_files import FILE_MODE, private_folder, tighten

KEY_BYTES: Final = 32
"""AES-256."""

_NONCE_BYTES: Final = 12
_KEY_ID_DIGITS: Final = 16
_PURPOSE: Final = b"perdure push configurations 1\0"
_NAMING: Final = b"perdure push configuration names 1\0"


class Seals:
    """Seals and opens under one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._naming = hmac.digest(key, _NAMING, hashlib.sha256)
        self.key_id = hashlib.sha256(_PURPOSE + key).hexdigest()[:_KEY_ID_DIGITS]

    def seal(self, text: bytes, *names: str) -> bytes:
        """Return the text, sealed for what is called `names`."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text, _bound(names))

    def named(self, text: bytes, *names: str) -> str:
        """Return the one name of this text among what is called `names`; without the key it tells nothing of it."""
        return hmac.digest(self._naming, b"\0".join((*(name.encode() for name in names), text)), "sha256").hex()

    def open(self, sealed: bytes, *names: str) -> bytes:
        """Return the text; raises `Diverged` for what was not sealed under this key for these names."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _bound(names))
        except InvalidTag as error:
            raise Diverged(
                f"what is stored of push configuration {'/'.join(names)} does not open under key {self.key_id}; "
                f"give the {SECRETS_KEY} or the file {SECRETS_FILE} that it was sealed with, or create it again"
            ) from error


def _bound(names: tuple[str, ...]) -> bytes:
    return _PURPOSE + b"\0".join(name.encode() for name in names)


def seals_of(settings: Settings) -> Seals | None:
    """Return the seals of a deployment; None where none can be: a shared store, and no key for all who share it.

    Makes the key's file (0600) where it is needed and missing. Raises `ConfigurationError` naming what is wrong.
    """
    if settings.secrets_key is not None:
        return Seals(_decoded(SECRETS_KEY, settings.secrets_key.get_secret_value()))
    if not settings.store_url.startswith("sqlite:"):
        return None
    path = settings.home / SECRETS_FILE
    try:
        private_folder(settings.home, os.getuid())
        tighten(path, os.getuid())
        return Seals(_decoded(str(path), _kept(path)))
    except OSError as error:
        raise ConfigurationError(
            "PERDURE_HOME", f"{path} cannot be used: {error.strerror or error}; make it yours, or set {SECRETS_KEY}"
        ) from error


def _kept(path: Path) -> str:
    """Return what the file says, made if there is none; of several processes that make it at once one wins."""
    if not path.exists():
        partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            os.write(file, base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            os.fsync(file)
            os.close(file)
            os.link(partial, path)
        except FileExistsError:
            return path.read_text()
        finally:
            partial.unlink()
    return path.read_text()


def _decoded(field: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigurationError(
            field, f"must be {KEY_BYTES} bytes in base64; `openssl rand -base64 {KEY_BYTES}` makes such a key"
        )
    return key
