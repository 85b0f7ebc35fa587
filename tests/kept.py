"""Results of long runs that are kept beside the tests: what was found, with the commit and the day.

`PERDURE_TEST_REPORT_DIR` names the folder (`scripts/test full` sets it to `tests/results`); without it nothing is kept.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

VARIABLE = "PERDURE_TEST_REPORT_DIR"


def keep(name: str, found: Mapping[str, Any]) -> None:
    """Write `name`.json, where results are to be kept."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    today = datetime.now(UTC).date().isoformat()  # noqa: TID251 - a result has a day
    told = {"commit": _commit(), "date": today, **found}
    (place / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip()
