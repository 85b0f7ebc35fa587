"""Which Temporal: an embedded one, a remote one, or one in memory. Values only; nothing is opened here.

A key is kept as a secret: neither a text of these settings nor an error about them shows it.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, field_validator, model_validator

from perdure.core.content import Frozen
from perdure.core.errors import ConfigurationError
from perdure.temporal.embedded import STARTUP_TIMEOUT_S
from perdure.temporal.embedded_binary import VARIABLE

DEFAULT_NAMESPACE = "default"
"""The dev server makes it by itself."""

CONNECT_TIMEOUT_S = 10.0
"""How long a remote Temporal may take to answer the first time."""

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})


class _Settings(Frozen):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class EmbeddedSettings(_Settings):
    """A server of one's own on a SQLite file.

    `own` says what to do about a database that another process owns: "always" refuses, "auto" joins its server,
    "never" only ever joins and refuses when there is none.
    """

    mode: Literal["embedded"] = "embedded"
    database: Path
    own: Literal["always", "auto", "never"] = "always"
    binary_path: Path | None = None
    ui: bool = False
    startup_timeout_s: float = Field(default=STARTUP_TIMEOUT_S, gt=0)

    @property
    def namespace(self) -> str:
        """The namespace its tasks live in."""
        return DEFAULT_NAMESPACE


class MemorySettings(_Settings):
    """A server of one's own that forgets everything at its end; never shared. For tests."""

    mode: Literal["memory"] = "memory"
    binary_path: Path | None = None
    startup_timeout_s: float = Field(default=STARTUP_TIMEOUT_S, gt=0)

    @property
    def namespace(self) -> str:
        """The namespace its tasks live in."""
        return DEFAULT_NAMESPACE


class TlsSettings(_Settings):
    """How to speak TLS. Paths of PEM files; without `ca` the system's certificates are trusted."""

    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    server_name: str | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> "TlsSettings":
        if (self.client_cert is None) != (self.client_key is None):
            raise ValueError("client_cert and client_key go together; give both or none")
        return self


class RemoteSettings(_Settings):
    """Temporal Cloud or one's own cluster. `tls` None means: as it needs to be, on when there is an API key."""

    mode: Literal["remote"] = "remote"
    address: str
    namespace: str = Field(default=DEFAULT_NAMESPACE, min_length=1)
    tls: TlsSettings | bool | None = None
    api_key: SecretStr | None = None
    connect_timeout_s: float = Field(default=CONNECT_TIMEOUT_S, gt=0)

    @field_validator("address")
    @classmethod
    def _host_and_port(cls, address: str) -> str:
        host, _, port = address.rpartition(":")
        if "://" in address or not host or not port.isdecimal() or not 0 < int(port) < 65536:  # noqa: PLR2004
            raise ValueError("must be host:port without a scheme, as in temporal.example.org:7233")
        return address

    @field_validator("api_key")
    @classmethod
    def _not_empty(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not key.get_secret_value().strip():
            raise ValueError("is empty; leave it out or set it")
        return key

    @model_validator(mode="after")
    def _no_key_in_clear(self) -> "RemoteSettings":
        if self.api_key is not None and self.tls is False and self.host not in LOOPBACK_HOSTS:
            raise ValueError("tls may not be off with an api_key, which would cross the network in clear")
        return self

    @property
    def host(self) -> str:
        """The address without its port."""
        return self.address.rpartition(":")[0]

    @property
    def uses_tls(self) -> bool:
        """Whether TLS is spoken."""
        return self.api_key is not None if self.tls is None else self.tls is not False

    @property
    def key_digest(self) -> str:
        """A digest that tells keys apart without showing one; empty without a key."""
        return "" if self.api_key is None else hashlib.sha256(self.api_key.get_secret_value().encode()).hexdigest()


TemporalSettings = EmbeddedSettings | RemoteSettings | MemorySettings

_ADAPTER: TypeAdapter[TemporalSettings] = TypeAdapter(Annotated[TemporalSettings, Field(discriminator="mode")])


def temporal_settings(values: Mapping[str, Any]) -> TemporalSettings:
    """Check settings as they come from a file or a command line.

    Raises:
        ConfigurationError: Names the key and what is wrong with it; never shows a value.
    """
    try:
        return _ADAPTER.validate_python(dict(values))
    except ValidationError as error:
        raise _explained(error) from None  # the original shows its input


def settings_from_environment(environment: Mapping[str, str], database: Path) -> TemporalSettings:
    """Return what the environment names: a remote Temporal with `TEMPORAL_ADDRESS`, else an embedded one.

    Commands that share a data folder share its embedded server: the first owns it, the others join.

    `PERDURE_TEMPORAL_BINARY` names the Temporal CLI that an embedded one runs, in place of the installed package's.

    Read are `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS` (true or false),
    `TEMPORAL_TLS_SERVER_CA_CERT_PATH`, `TEMPORAL_TLS_CLIENT_CERT_PATH`, `TEMPORAL_TLS_CLIENT_KEY_PATH` and
    `TEMPORAL_TLS_SERVER_NAME`, the names that Temporal's own tools use.

    Args:
        environment: Usually `os.environ`.
        database: The embedded server's file when no address is named.

    Raises:
        ConfigurationError: Names the variable's key and what is wrong with it.
    """
    address = environment.get("TEMPORAL_ADDRESS", "").strip()
    if not address:
        named = environment.get(VARIABLE, "").strip()
        return EmbeddedSettings(database=database, own="auto", binary_path=Path(named) if named else None)
    values: dict[str, Any] = {"mode": "remote", "address": address}
    for key, name in (("namespace", "TEMPORAL_NAMESPACE"), ("api_key", "TEMPORAL_API_KEY")):
        if environment.get(name):
            values[key] = environment[name]
    tls = {key: environment[name] for key, name in _TLS_VARIABLES.items() if environment.get(name)}
    switch = environment.get("TEMPORAL_TLS", "")
    if tls and switch.lower() not in {"false", "0"}:
        values["tls"] = tls
    elif switch:
        values["tls"] = _switch(switch)
    return temporal_settings(values)


_TLS_VARIABLES = {
    "ca": "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
    "client_cert": "TEMPORAL_TLS_CLIENT_CERT_PATH",
    "client_key": "TEMPORAL_TLS_CLIENT_KEY_PATH",
    "server_name": "TEMPORAL_TLS_SERVER_NAME",
}


def _switch(text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise ConfigurationError("TEMPORAL_TLS", "must be true or false")
    return known[text.lower()]


def _explained(error: ValidationError) -> ConfigurationError:
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if part not in {"embedded", "remote", "memory"})
    problem = first["msg"].removeprefix("Value error, ")
    return ConfigurationError(field or "temporal", problem[:1].lower() + problem[1:])
