"""`perdure init` writes an agent that says of itself everything that can be said of one."""

import re
import sys
from pathlib import Path

import pytest

from perdure.app.agent_file.form import AgentForm, HttpForm, McpForm, OauthForm
from perdure.app.agent_file.reading import read_form
from perdure.app.loading import load_agent
from perdure.core.agent import Budget, RetryPolicy
from perdure.core.rulebook import ApprovalRule
from perdure.core.tool_rules import ToolRules
from tests.cli.desk import Desk

FORMS = (AgentForm, ApprovalRule, McpForm, OauthForm, HttpForm, ToolRules, Budget, RetryPolicy)


@pytest.fixture
def first(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert desk.here("init", str(desk.folder / "first")).code == 0
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "agent_tools", raising=False)
    return desk.folder / "first" / "agent.toml"


def test_the_first_agent_is_one(first: Path) -> None:
    agent = load_agent(str(first))
    assert (agent.id, [spec.name for spec in agent.spec().tools]) == ("first", ["get_order", "write_note"])


def test_every_key_that_there_is_stands_in_it(first: Path) -> None:
    text = first.read_text()
    for form in FORMS:
        for key in form.model_fields.keys() - {"mcp", "http", "rules"}:
            assert re.search(rf"^#?{key} = |^#?\[{{1,2}}(\w+\.)*{key}\]", text, re.MULTILINE), f"{form.__name__}.{key}"
    for table in ("[rules.write_note]", "[mcp.orders]", '[mcp.orders.rules."refund*"]', "[http.shipping]"):
        assert f"#{table}" in text


def test_what_is_commented_out_may_be_taken_in(first: Path) -> None:
    whole = re.sub(r"^#(?! |$)", "", first.read_text(), flags=re.MULTILINE)
    first.write_text(whole)
    form, _ = read_form(first)
    assert form.mcp.keys() == {"orders", "stock"}
    assert form.fallbacks == ["anthropic:claude-sonnet-4-5"]


def test_nothing_is_overwritten(first: Path, desk: Desk) -> None:
    first.unlink()
    (first.parent / "agent_tools.py").write_text("mine")
    done = desk.here("init", str(first.parent))
    assert done.code == 2
    assert "agent_tools.py exists already and is left as it is" in done.err
    assert not first.exists()


def test_programs_are_told_what_was_written_and_what_to_run(desk: Desk) -> None:
    done = desk.here("init", str(desk.folder / "my first"), "--json")
    assert (done.code, done.err) == (0, "")
    (told,) = done.objects
    folder = desk.folder / "my first"
    assert told["wrote"] == [str(folder / "agent.toml"), str(folder / "agent_tools.py")]
    assert all(Path(path).is_file() for path in told["wrote"])
    assert told["run"] == f"cd '{folder}' && perdure run agent.toml \"Where is my order A-1?\""
    assert told["check"] == f"cd '{folder}' && perdure check agent.toml"
    again = desk.here("init", str(folder), "--json")
    assert (again.code, again.out) == (2, "")
