"""Who may come in and how much they may ask: what an operator sets for the front door. Values only.

`PERDURE_AUTH` names what a caller must show: `keys` (API keys, made with `perdure keys add`), `jwt` (tokens of an
issuer), or both, `keys,jwt`; `none`, the default, is for this machine alone. A token is checked against the issuer's
keys (`PERDURE_JWT_JWKS`: an https URL or a file's path), its issuer (`PERDURE_JWT_ISSUER`) and its audience
(`PERDURE_JWT_AUDIENCE`), all needed; `PERDURE_JWT_ALGORITHMS` pins the algorithms, `PERDURE_JWT_CLAIM` names the claim
that is the principal (`sub`), `PERDURE_JWT_SCOPE` a scope that it must have. `PERDURE_CARD_KEY` is a private key as PEM
or JWK, or the path of a file with one; it signs the card. The bounds of `EntryLimits` are `PERDURE_` and their name.

Settings that say something without being used are refused: a door that its operator takes for locked must be.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator

from perdure.core import limits
from perdure.core.content import Frozen
from perdure.core.errors import ConfigurationError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those by which a public key proves who signed. One that shares its secret with every verifier proves nothing."""

DEFAULT_ALGORITHMS: Final = ("RS256", "PS256", "ES256", "ES384", "EdDSA")


class JwtSettings(Frozen):
    """Whose tokens are taken, and for whom they must be meant."""

    jwks: str
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    claim: str = Field(default="sub", pattern=r"^[\w:./-]+$")
    scope: str = Field(default="", pattern=r"^[\w:./-]*$")

    @field_validator("jwks")
    @classmethod
    def _reachable(cls, jwks: str) -> str:
        if "://" not in jwks:
            if not Path(jwks).is_absolute():
                raise ValueError("must be an https:// URL or an absolute path")
            return jwks
        url = urlsplit(jwks)
        if url.username or url.password:
            raise ValueError("must not hold a user or password; key sets are public")
        if url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or "")):
            return jwks
        raise ValueError("must be an https:// URL: whoever can change the keys on their way can be anybody")

    @field_validator("algorithms", mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        names = tuple(each.strip() for each in given.split(",")) if isinstance(given, str) else given
        if not isinstance(names, tuple) or not names or not set(names) <= set(ALGORITHMS):
            raise ValueError(f"must be some of {', '.join(ALGORITHMS)}")
        return names


class EntryLimits(Frozen):
    """What one caller, and all together, may ask for."""

    request_bytes_max: int = Field(default=limits.REQUEST_BYTES_MAX, gt=0)
    requests_per_s: float = Field(default=limits.REQUESTS_PER_S, gt=0)
    requests_max: int = Field(default=limits.REQUESTS_MAX, gt=0)
    requests_per_principal_max: int = Field(default=limits.REQUESTS_PER_PRINCIPAL_MAX, gt=0)
    streams_max: int = Field(default=limits.STREAMS_MAX, gt=0)
    streams_per_principal_max: int = Field(default=limits.STREAMS_PER_PRINCIPAL_MAX, gt=0)
    credential_recheck_s: float = Field(default=limits.CREDENTIAL_RECHECK_S, gt=0)


class EntrySettings(Frozen):
    """The front door's rules. Without `keys` and `jwt` nobody is asked who they are."""

    keys: bool = False
    jwt: JwtSettings | None = None
    card_key: SecretStr | None = None
    limits: EntryLimits = EntryLimits()

    @property
    def authenticates(self) -> bool:
        """Whether callers must say who they are."""
        return self.keys or self.jwt is not None


def entry_from_environment(environment: Mapping[str, str]) -> EntrySettings:
    """Read the rules; raises `ConfigurationError` naming the variable and the fix, never showing a value."""
    ways = _ways(environment)
    given = {name: environment[variable] for name, variable in _JWT.items() if environment.get(variable)}
    if given and "jwt" not in ways:
        raise ConfigurationError(
            _JWT[next(iter(given))], "is set, but PERDURE_AUTH does not name jwt; add it there or unset this"
        )
    bounds = {name: environment[variable] for name, variable in _BOUNDS.items() if environment.get(variable)}
    return EntrySettings(
        keys="keys" in ways,
        jwt=_checked(JwtSettings, given, _JWT) if "jwt" in ways else None,
        card_key=SecretStr(environment["PERDURE_CARD_KEY"]) if environment.get("PERDURE_CARD_KEY") else None,
        limits=_checked(EntryLimits, bounds, _BOUNDS),
    )


def is_loopback(host: str) -> bool:
    """Whether that address, or name, is this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_JWT: Final = {name: f"PERDURE_JWT_{name.upper()}" for name in JwtSettings.model_fields}
_BOUNDS: Final = {name: f"PERDURE_{name.upper()}" for name in EntryLimits.model_fields}


def _ways(environment: Mapping[str, str]) -> frozenset[str]:
    named = [each.strip() for each in environment.get("PERDURE_AUTH", "none").lower().split(",")]
    ways = frozenset(named)
    if not ways <= {"keys", "jwt"} and ways != {"none"}:
        raise ConfigurationError("PERDURE_AUTH", "must be keys, jwt, keys,jwt or none")
    return ways


_Kind = TypeVar("_Kind", JwtSettings, EntryLimits)


def _checked(kind: type[_Kind], values: dict[str, Any], variables: Mapping[str, str]) -> _Kind:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        problem = "is not set" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
        name = str(first["loc"][0])
        raise ConfigurationError(variables.get(name, name), problem[:1].lower() + problem[1:]) from None
