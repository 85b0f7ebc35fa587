"""An issuer's public keys: from its URL or from a file, cached, and fetched again when a token names one that is new.

Issuers change keys: a new one appears in the set before tokens are signed with it. So a set is used for JWKS_FRESH_S,
an unknown key id causes one fetch, and no more than one in JWKS_AGAIN_S, whatever anybody sends; all who wait share it.
While the issuer does not answer the last set is used for JWKS_STALE_S: an issuer that restarts must not close this
door. Redirects are not followed, and what is too large or no key set changes nothing.
"""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from perdure.core import limits
from perdure.core.errors import Unavailable

OK = 200


class KeySet:
    """The keys of one issuer. `allowed` are the algorithms that a key may be for."""

    def __init__(self, where: str, allowed: tuple[str, ...], now_s: Callable[[], float] = time.monotonic) -> None:
        self._where = where
        self._allowed = allowed
        self._now_s = now_s
        self._keys: tuple[PyJWK, ...] = ()
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._fetching = asyncio.Lock()

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """Return the key for a token that names this key and algorithm, or None.

        A token that names no key is checked with the only one that there is for its algorithm.

        Raises `Unavailable` where there is no set and none can be got.
        """
        found = self._known(key_id, algorithm)
        age_s = self._age_s(self._fetched_s)
        if (found is None or age_s >= limits.JWKS_FRESH_S) and (self._may_try() or self._fetching.locked()):
            async with self._fetching:  # whoever comes while a set is fetched waits for that one
                if self._may_try():
                    await self._renew()
            found = self._known(key_id, algorithm)
        if self._age_s(self._fetched_s) >= limits.JWKS_FRESH_S + limits.JWKS_STALE_S:
            raise Unavailable("the issuer's keys cannot be had now; send the same again")
        return found

    def _known(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        fit = [key for key in self._keys if key.algorithm_name == algorithm and key_id in {None, key.key_id}]
        return fit[0] if len(fit) == 1 else None

    def _age_s(self, at_s: float | None) -> float:
        return float("inf") if at_s is None else self._now_s() - at_s

    def _may_try(self) -> bool:
        return self._age_s(self._tried_s) >= limits.JWKS_AGAIN_S

    async def _renew(self) -> None:
        self._tried_s = self._now_s()
        try:
            keys = _parsed(await self._read(), self._allowed)
        except (OSError, ValueError, httpx.HTTPError, TimeoutError):
            return
        if keys:
            self._keys, self._fetched_s = keys, self._now_s()

    async def _read(self) -> bytes:
        if "://" not in self._where:
            return await asyncio.to_thread(_read_file, Path(self._where))
        async with (
            asyncio.timeout(limits.JWKS_FETCH_S),
            httpx.AsyncClient(timeout=limits.JWKS_FETCH_S, follow_redirects=False) as client,
            client.stream("GET", self._where, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != OK:
                raise ValueError("no key set")
            read = b""
            async for chunk in response.aiter_bytes():
                read += chunk
                if len(read) > limits.JWKS_BYTES_MAX:
                    raise ValueError("too large for a key set")
            return read


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        read = file.read(limits.JWKS_BYTES_MAX + 1)
    if len(read) > limits.JWKS_BYTES_MAX:
        raise ValueError("too large for a key set")
    return read


def _parsed(data: bytes, allowed: tuple[str, ...]) -> tuple[PyJWK, ...]:
    """Return the keys that can be used, each for one algorithm; those of other kinds and uses are left out.

    A key that names no algorithm is one for each that is allowed and fits it.
    """
    body = json.loads(data)
    rows = body.get("keys") if isinstance(body, dict) else None
    if not isinstance(rows, list) or len(rows) > limits.JWKS_KEYS_MAX:
        raise ValueError("no key set")
    keys: list[PyJWK] = []
    for row in rows:
        if not isinstance(row, dict) or row.get("use", "sig") != "sig" or row.get("kty") not in _FITTING:
            continue
        named = row.get("alg")
        for algorithm in _FITTING[row["kty"]]:
            if algorithm in allowed and named in {None, algorithm}:
                keys.extend(_key(row, algorithm))
    return tuple(keys)


_FITTING = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}


def _key(row: dict[str, str], algorithm: str) -> list[PyJWK]:
    try:
        return [PyJWK.from_dict(row, algorithm)]
    except PyJWTError:
        return []  # another curve, or no key at all
