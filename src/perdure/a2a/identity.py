"""Who somebody is, and how it is found out: the two words that every way of authentication shares.

An `Authenticator` knows its credentials by their form and says whose one is. The gate knows no more of keys and tokens
than that, and asks again while a request stays open: what was true when a stream began may not be any more.

A credential is taken from `X-API-Key` and from `Authorization: Bearer` alike. The card names one of them for each kind,
but clients that have a credential and no idea of its kind show it where they can.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from a2a.types.a2a_pb2 import SecurityScheme
from starlette.datastructures import Headers

from perdure.a2a.refusals import UnauthenticatedError

KEY_HEADER: Final = "X-API-Key"


@dataclass(frozen=True)
class Credential:
    """What somebody showed; no text of it, or of an error about it, has the secret."""

    by: "Authenticator"
    secret: str = field(repr=False)

    async def principal(self) -> str:
        """Return whose it is, now. Raises as `Authenticator.principal` does."""
        return await self.by.principal(self.secret)


class Authenticator(Protocol):
    """One way to say who one is."""

    @property
    def name(self) -> str:
        """What the card calls it."""
        ...

    @property
    def scheme(self) -> SecurityScheme:
        """What the card says of it."""
        ...

    @property
    def roles(self) -> tuple[str, ...]:
        """What the card says that a caller needs: scopes, or what comes nearest; never empty (`card.py`)."""
        ...

    @property
    def challenge(self) -> str:
        """The `WWW-Authenticate` of a request without a credential."""
        ...

    def knows(self, secret: str) -> bool:
        """Whether the credential is of this kind, by its form alone."""
        ...

    async def principal(self, secret: str) -> str:
        """Return whose the credential is.

        Raises `UnauthenticatedError` for one that is none, `PermissionDeniedError` for one that is not enough, and
        `Unavailable` where it cannot be told now.
        """
        ...


def shown(headers: Headers, authenticators: Sequence[Authenticator]) -> Credential:
    """Return the credential in the headers; raises `UnauthenticatedError` where there is none that is known.

    A header that is there twice is refused: whoever stands between may have looked at the other one.
    """
    found: list[str] = []
    for name in (KEY_HEADER, "Authorization"):
        values = headers.getlist(name)
        if len(values) > 1:
            raise UnauthenticatedError(f"{name} is there {len(values)} times; send it once")
        found.extend(values if name == KEY_HEADER else _bearer(values))
    for secret in found:
        for authenticator in authenticators:
            if authenticator.knows(secret.strip()):
                return Credential(authenticator, secret.strip())
    if found:
        raise UnauthenticatedError("the credential is of no kind that is taken here; the agent's card says which are")
    raise UnauthenticatedError("no credential was sent; the agent's card says which are taken, and where")


def _bearer(values: list[str]) -> list[str]:
    parted = [value.strip().partition(" ") for value in values]
    return [token for scheme, _, token in parted if scheme.lower() == "bearer"]
