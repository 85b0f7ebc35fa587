"""Settings: what is wrong is named, and a key is never shown."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from perdure.core.errors import ConfigurationError
from perdure.temporal.settings import (
    EmbeddedSettings,
    MemorySettings,
    RemoteSettings,
    TlsSettings,
    settings_from_environment,
    temporal_settings,
)

SECRET = "the-key-itself"
FILE = Path("/data/temporal.db")


@pytest.mark.parametrize(
    ("values", "field", "fix"),
    [
        ({"mode": "remote"}, "address", "required"),
        ({"mode": "remote", "address": "example.org"}, "address", "host:port"),
        ({"mode": "remote", "address": "https://example.org:7233"}, "address", "without a scheme"),
        ({"mode": "remote", "address": "example.org:99999"}, "address", "host:port"),
        ({"mode": "remote", "address": "h:1", "namespace": ""}, "namespace", "at least 1"),
        ({"mode": "remote", "address": "h:1", "tls": {"client_cert": "a"}}, "tls", "give both or none"),
        ({"mode": "remote", "address": "h:1", "api_key": SECRET, "tls": False}, "temporal", "in clear"),
        ({"mode": "remote", "address": "h:1", "api_key": " "}, "api_key", "empty"),
        ({"mode": "remote", "address": "h:1", "adress": SECRET}, "adress", "not permitted"),
        ({"mode": "embedded"}, "database", "required"),
        ({"mode": "embedded", "database": "x", "own": "sometimes"}, "own", "'always', 'auto' or 'never'"),
        ({"mode": "clay"}, "temporal", "embedded"),
    ],
)
def test_bad_settings_name_the_key_and_show_no_value(values: dict[str, Any], field: str, fix: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        temporal_settings(values)
    assert caught.value.field.startswith(field)
    assert fix in caught.value.problem
    assert SECRET not in str(caught.value)


def test_good_settings_come_out_typed_and_frozen() -> None:
    assert temporal_settings({"mode": "embedded", "database": "/d"}) == EmbeddedSettings(database=Path("/d"))
    assert temporal_settings({"mode": "memory"}) == MemorySettings()
    settings = temporal_settings({"mode": "remote", "address": "[::1]:7233"})
    assert isinstance(settings, RemoteSettings)
    with pytest.raises(ValidationError):
        settings.address = "other:1"  # type: ignore[misc]


def test_a_key_is_never_shown_and_turns_tls_on() -> None:
    settings = RemoteSettings(address="h:1", api_key=SecretStr(SECRET))
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"
    assert settings.uses_tls
    assert settings.key_digest
    assert settings.key_digest != RemoteSettings(address="h:1", api_key=SecretStr("another")).key_digest
    assert not RemoteSettings(address="h:1").uses_tls


def test_the_environment_names_a_remote_temporal_or_none() -> None:
    embedded = EmbeddedSettings(database=FILE, own="auto")
    assert settings_from_environment({}, FILE) == embedded
    assert settings_from_environment({"TEMPORAL_API_KEY": SECRET}, FILE) == embedded
    assert settings_from_environment({"PERDURE_TEMPORAL_BINARY": " "}, FILE) == embedded
    own = settings_from_environment({"PERDURE_TEMPORAL_BINARY": "/opt/temporal"}, FILE)
    assert own == embedded.model_copy(update={"binary_path": Path("/opt/temporal")})
    named = settings_from_environment(
        {
            "TEMPORAL_ADDRESS": "h:1",
            "TEMPORAL_NAMESPACE": "n",
            "TEMPORAL_API_KEY": SECRET,
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/ca",
            "TEMPORAL_TLS_SERVER_NAME": "s",
        },
        FILE,
    )
    tls = TlsSettings(ca=Path("/ca"), server_name="s")
    assert named == RemoteSettings(address="h:1", namespace="n", tls=tls, api_key=SecretStr(SECRET))
    on = settings_from_environment({"TEMPORAL_ADDRESS": "h:1", "TEMPORAL_TLS": "true"}, FILE)
    assert on == RemoteSettings(address="h:1", tls=True)
    with pytest.raises(ConfigurationError, match="TEMPORAL_TLS: must be true or false"):
        settings_from_environment({"TEMPORAL_ADDRESS": "h:1", "TEMPORAL_TLS": "perhaps"}, FILE)
