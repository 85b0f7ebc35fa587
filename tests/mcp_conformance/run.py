"""Run the MCP conformance kit's client scenarios, against a client and the baseline (README.md beside this file).

    python -m tests.mcp_conformance.run KIT [--client COMMAND] [--only SCENARIO …] [--keep FILE]

KIT is the folder of `scripts/mcp-kit`. Without `--client` it is the SDK's bare client. Ends with 1 when something
failed that the baseline does not have.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.mcp_conformance.kit_run import Kit, Verdict

BASELINE: Final = Path(__file__).with_name("baseline.json")


def bare_client(kit: Path) -> str:
    """Return the command of the SDK's bare client; it knows nothing of this package's environment."""
    return f"{kit / 'venv/bin/python'} -m tests.mcp_conformance.bare"


def our_client(kit: Path) -> str:
    """Return the command of this package's own path to MCP servers; nothing of the kit's folder is needed."""
    return f"{sys.executable} -m tests.mcp_conformance.ours"


def kept_baseline() -> Verdict:
    """Return what the SDK's bare client came to."""
    return _verdict(json.loads(BASELINE.read_text()))


def _verdict(said: dict[str, object]) -> Verdict:
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    return Verdict(**fields)  # type: ignore[arg-type]


def judged(kit: Path, client: str, only: list[str]) -> Verdict:
    """Run the scenarios, all where `only` names none."""
    with tempfile.TemporaryDirectory() as results:
        asked = Kit(kit, Path(results))
        return asked.judge(client, only or asked.scenarios())


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", type=Path)
    parser.add_argument("--client", help="a command, to which the URL of the scenario's server is added")
    parser.add_argument("--only", action="append", default=[], help="a scenario; may be repeated")
    parser.add_argument("--keep", type=Path, help="write the verdict here")
    given = parser.parse_args()
    given.kit = given.kit.absolute()
    verdict = judged(given.kit, given.client or bare_client(given.kit), given.only)
    if given.keep:
        given.keep.write_text(json.dumps(asdict(verdict), indent=2) + "\n")
    print(f"{verdict.scenarios} scenarios: {verdict.passed} passed, {len(verdict.failures)} failed")
    for kind in ("failures", "warnings", "errors"):
        for each in getattr(verdict, kind):
            print(f"  {kind}: {each}")
    beyond = verdict.beyond(kept_baseline()) if BASELINE.exists() else []
    for each in beyond:
        print(f"beyond the baseline: {each}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
