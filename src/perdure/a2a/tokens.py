"""Bearer tokens: JWTs of one issuer, meant for this agent, by keys and algorithms that are pinned.

The token names a key and an algorithm; only a key of the issuer's set that is for that very algorithm, of those that
the operator allows, is tried. Issuer, audience and expiry must be there and right. What is wrong is told to the caller
only as far as it helps an honest one: expired, or not valid.

A token's principal is `jwt:` and its claim. So no issuer can name somebody who has an API key; an operator who wants
both to be one makes the key for `jwt:…`.
"""

from typing import Any, Final

import jwt
from a2a.types.a2a_pb2 import HTTPAuthSecurityScheme, SecurityScheme

from perdure.a2a.jwks import KeySet
from perdure.a2a.refusals import PermissionDeniedError, UnauthenticatedError
from perdure.app.entry import JwtSettings
from perdure.core import limits
from perdure.core.digests import safe_text

PREFIX: Final = "jwt:"
DOTS: Final = 2


class TokenAuthenticator:
    """Takes tokens of one issuer."""

    name = "bearer"

    def __init__(self, settings: JwtSettings, keys: KeySet | None = None) -> None:
        self._settings = settings
        self._keys = keys or KeySet(settings.jwks, settings.algorithms)
        self.challenge = f'Bearer realm="perdure"{_scope(settings)}'
        self.roles = (settings.scope or "principal",)

    @property
    def scheme(self) -> SecurityScheme:
        """What the card says of it."""
        return SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT"))

    def knows(self, secret: str) -> bool:
        """Whether it looks like a token."""
        return secret.count(".") == DOTS

    async def principal(self, secret: str) -> str:
        """Return whose token it is; raises as `Authenticator.principal` says."""
        if len(secret) > limits.TOKEN_BYTES_MAX:
            raise self._refused(f"has more than {limits.TOKEN_BYTES_MAX} bytes")
        try:
            header = jwt.get_unverified_header(secret)
            algorithm, key_id = str(header.get("alg")), header.get("kid")
            key = await self._keys.find(key_id, algorithm) if algorithm in self._settings.algorithms else None
            if key is None:
                raise self._refused("is not valid here")
            claims = self._claims(secret, key)
        except jwt.ExpiredSignatureError:
            raise self._refused("has expired; get a new one") from None
        except jwt.PyJWTError:
            raise self._refused("is not valid here") from None
        self._refuse_without_scope(claims)
        return PREFIX + self._named(claims)

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(self._settings.algorithms),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=limits.CLOCK_SKEW_S,
            options={"require": ["exp", "iss", "aud", self._settings.claim], "enforce_minimum_key_length": True},
        )
        return claims

    def _named(self, claims: dict[str, Any]) -> str:
        name = claims.get(self._settings.claim)
        room = limits.PRINCIPAL_CHARS_MAX - len(PREFIX)
        if not isinstance(name, str) or not 0 < len(name.strip()) <= room or safe_text(name) != name:
            raise self._refused(f"names nobody in {self._settings.claim!r}")
        return name

    def _refuse_without_scope(self, claims: dict[str, Any]) -> None:
        given = claims.get("scope", claims.get("scp", ""))
        scopes = given.split() if isinstance(given, str) else given
        if self._settings.scope and (not isinstance(scopes, list) or self._settings.scope not in scopes):
            told = f'Bearer realm="perdure", error="insufficient_scope"{_scope(self._settings)}'
            raise PermissionDeniedError(
                f"the token lacks the scope {self._settings.scope!r}; get one with it", {"WWW-Authenticate": told}
            )

    def _refused(self, problem: str) -> UnauthenticatedError:
        told = f'Bearer realm="perdure", error="invalid_token", error_description="the token {problem}"'
        return UnauthenticatedError(f"the token {problem}", {"WWW-Authenticate": told.replace("'", "")})


def _scope(settings: JwtSettings) -> str:
    return f', scope="{settings.scope}"' if settings.scope else ""
