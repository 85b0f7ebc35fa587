"""Where a process finds its data: from the environment, once, at the edge.

`PERDURE_HOME` names the data folder (default: the user's data folder for `perdure`, mode 0700). It holds the embedded
Temporal (`temporal.db`) and the store (`store.db`) unless `TEMPORAL_ADDRESS` or `PERDURE_STORE_URL` name others.
`PERDURE_TEMPORAL_BINARY` names the Temporal CLI that the embedded one runs; default: the installed package's.
Who may come in at the front door is in `entry.py`.

`PERDURE_SECRETS_KEY` seals what clients entrust to a server (32 bytes in base64; default: a file in the data folder).
`PERDURE_PUSH_NETWORKS` names the networks that are not public and that clients' webhooks may reach all the same, as in
`10.1.0.0/16, 127.0.0.1/32`; default: none.
"""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_data_path
from pydantic import SecretStr

from perdure.app.entry import EntrySettings, entry_from_environment
from perdure.core.errors import ConfigurationError
from perdure.temporal.embedded_binary import VARIABLE
from perdure.temporal.settings import EmbeddedSettings, TemporalSettings, settings_from_environment

SECRETS_KEY: Final = "PERDURE_SECRETS_KEY"
PUSH_NETWORKS: Final = "PERDURE_PUSH_NETWORKS"

SECRETS_FILE: Final = "secrets.key"
"""The key in the data folder, where the environment names none."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Settings:
    """One deployment's places, and what its servers may do beyond them."""

    home: Path
    temporal: TemporalSettings
    store_url: str
    entry: EntrySettings = field(default_factory=EntrySettings)
    secrets_key: SecretStr | None = None
    push_networks: tuple[Network, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, home: Path | None = None) -> "Settings":
        """Read the settings; `home` overrules `PERDURE_HOME`. Opens and creates nothing.

        Raises `ConfigurationError` naming the variable and the fix.
        """
        given = os.environ if environment is None else environment
        folder = home or (Path(given["PERDURE_HOME"]) if given.get("PERDURE_HOME") else user_data_path("perdure"))
        if not folder.is_absolute():
            folder = Path.cwd() / folder
        store_url = given.get("PERDURE_STORE_URL") or f"sqlite:///{folder / 'store.db'}"
        temporal = settings_from_environment(given, folder / "temporal.db")
        if not isinstance(temporal, EmbeddedSettings) and "PERDURE_STORE_URL" not in given:
            # Workers on several hosts with a SQLite file each would not see each other's ledger.
            raise ConfigurationError(
                "PERDURE_STORE_URL", "is not set, but TEMPORAL_ADDRESS is; name the store that all its workers share"
            )
        return cls(
            home=folder,
            temporal=temporal,
            store_url=store_url,
            entry=entry_from_environment(given),
            secrets_key=SecretStr(given[SECRETS_KEY]) if given.get(SECRETS_KEY) else None,
            push_networks=tuple(
                _network(part.strip()) for part in given.get(PUSH_NETWORKS, "").split(",") if part.strip()
            ),
        )

    @classmethod
    def apart(cls, home: Path) -> "Settings":
        """Return those of a place of its own: of what the environment names, only the Temporal CLI to run counts."""
        return cls.from_environment({VARIABLE: os.environ.get(VARIABLE, "")}, home)


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(PUSH_NETWORKS, f"{error}; name networks as in 10.1.0.0/16, with commas") from error
