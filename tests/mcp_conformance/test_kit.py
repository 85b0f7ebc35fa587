"""The MCP conformance kit over clients: the SDK's bare one is the baseline, ours may fail in nothing that it does not.

A client is a command, to which the kit adds a URL; one that is to be judged is a row of CLIENTS.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.mcp_conformance.kit_run import ROOT
from tests.mcp_conformance.run import bare_client, judged, kept_baseline, our_client

KIT: Final = ROOT / ".mcp-kit"
INSTALL_S: Final = 600.0

CLIENTS: Final[dict[str, Callable[[Path], str]]] = {"bare": bare_client, "ours": our_client}

SOME: Final = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "auth/metadata-default"]
"""Both lifecycles, a question and a token."""


@pytest.fixture(scope="module")
def kit() -> Path:
    """The kit, installed where the next run finds it."""
    subprocess.run(["sh", ROOT / "scripts/mcp-kit", KIT], check=True, timeout=INSTALL_S)
    return KIT


@pytest.mark.slow
def test_the_kit_sees_what_a_client_does_and_what_none_does(kit: Path) -> None:
    """Negative control: a command that does nothing is beyond the baseline in every scenario."""
    good = judged(kit, bare_client(kit), SOME)
    assert good.beyond(kept_baseline()) == []
    assert (good.scenarios, good.failures, good.errors) == (len(SOME), (), ())
    none = judged(kit, "true", SOME)
    for scenario in SOME:
        assert [each for each in none.beyond(kept_baseline()) if scenario in each], scenario


@pytest.mark.parametrize(
    "name",
    [pytest.param("bare", marks=pytest.mark.full), pytest.param("ours", marks=pytest.mark.slow)],
)
def test_a_client_fails_in_nothing_beyond_the_baseline(kit: Path, name: str) -> None:
    verdict = judged(kit, CLIENTS[name](kit), [])
    assert verdict.beyond(kept_baseline()) == []
    assert verdict.scenarios == kept_baseline().scenarios
