"""Where a process finds its data: from the environment, once, at the edge.

`PERDURE_HOME` names the data folder (default: the user's data folder for `perdure`, mode 0700). It holds the embedded
Temporal (`temporal.db`) and the store (`store.db`) unless `TEMPORAL_ADDRESS` or `PERDURE_STORE_URL` name others.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from perdure.core.errors import ConfigurationError
from perdure.temporal.settings import EmbeddedSettings, TemporalSettings, settings_from_environment


@dataclass(frozen=True)
class Settings:
    """One deployment's places."""

    home: Path
    temporal: TemporalSettings
    store_url: str

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
        return cls(home=folder, temporal=temporal, store_url=store_url)
