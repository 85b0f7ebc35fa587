"""An agent as a file is the very same agent as in Python."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from perdure import Agent, Budget, RetryPolicy
from perdure.app.agent_file.form import AgentForm, HttpForm, McpForm, OauthForm, example_of
from perdure.app.agent_file.lines import lines_of
from perdure.app.loading import load_agent
from perdure.core.errors import ConfigurationError
from perdure.core.rulebook import ApprovalRule
from perdure.core.tool_rules import ToolRules
from perdure.tools.http import OpenApiTools
from perdure.tools.mcp import ClientCredentials, McpServer
from tests.app.filing import Folder

SMALL = """
id = "shop"
model = "openai:gpt-5"
"""

WHOLE = """
id = "shop"
model = "openai:gpt-5"
fallbacks = ["anthropic:claude-sonnet-4-5"]
description = "Helps."
version = "7"
instructions = "Help customers."
tools = ["TOOLS:get_order"]
after_answer = "input_required"
on_unanswered = "fail"
asks = false
model_timeout_s = 60
model_heartbeat_timeout_s = 20.5

[model_retry]
attempts_max = 2
first_ms = 100
factor = 3
delay_max_ms = 1_000

[budget]
turns_max = 5
tokens_max = 1_000
cost_usd_max = 2
wall_s_max = 60.5
"""


def test_a_file_says_what_python_says(folder: Folder) -> None:
    loaded = folder.load(WHOLE)
    assert loaded.instructions == "Help customers."
    (tool,) = loaded.tools
    written = Agent(
        "shop",
        model="openai:gpt-5",
        fallbacks=["anthropic:claude-sonnet-4-5"],
        description="Helps.",
        version="7",
        instructions="Help customers.",
        tools=[tool],
        after_answer="input_required",
        on_unanswered="fail",
        asks=False,
        model_timeout_s=60,
        model_heartbeat_timeout_s=20.5,
        model_retry=RetryPolicy(attempts_max=2, first_ms=100, factor=3, delay_max_ms=1_000),
        budget=Budget(turns_max=5, tokens_max=1_000, cost_usd_max=2, wall_s_max=60.5),
    )
    assert loaded.spec() == written.spec()
    assert (loaded.asks, loaded.description) == (written.asks, written.description)


def test_what_is_left_out_is_as_in_python(folder: Folder) -> None:
    loaded, written = folder.load(SMALL), Agent("shop", model="openai:gpt-5")
    assert loaded == written


def test_every_key_is_an_argument_in_python_and_the_other_way_round() -> None:
    """What a file cannot say is said in Python: `direct` is a function."""
    only_here = {"instructions_file", "model_retry", "rules", "mcp", "http"}
    assert set(AgentForm.model_fields) - only_here == {each.name for each in fields(Agent)} - {"direct", "model_retry"}
    assert set(McpForm.model_fields) == {each.name for each in fields(McpServer)} - {"name"}
    assert set(OauthForm.model_fields) == {each.name for each in fields(ClientCredentials)}
    parameters = set(inspect.signature(OpenApiTools).parameters)
    assert set(HttpForm.model_fields) == parameters - {"name"}


@pytest.mark.parametrize(
    ("form", "above"),
    [
        (AgentForm, ()),
        (McpForm, ("mcp", "orders")),
        (OauthForm, ("mcp", "orders", "oauth")),
        (HttpForm, ("http", "orders")),
        (ToolRules, ("mcp", "orders", "rules", "get_*")),
        (ToolRules, ("rules", "refund")),
        (ApprovalRule, ("approvals",)),
        (Budget, ("budget",)),
        (RetryPolicy, ("model_retry",)),
        (RetryPolicy, ("http", "orders", "rules", "get_*", "retry")),
    ],
)
def test_every_key_has_an_example_of_its_own(form: type[AgentForm], above: tuple[str, ...]) -> None:
    for key in form.model_fields:
        assert key in example_of((*above, key)), key


def test_instructions_stand_in_a_file_beside(folder: Folder) -> None:
    assert folder.load(f'{SMALL}instructions_file = "shop.md"').instructions == "Help customers.\n"


def test_models_may_be_objects_in_python(folder: Folder) -> None:
    loaded = folder.load('id = "shop"\nmodel = "python:TOOLS:model"\nfallbacks = ["python:TOOLS:second"]')
    assert [spec.name for spec in loaded.spec().models] == ["first", "second"]


def test_rules_stand_over_what_a_function_declares(folder: Folder) -> None:
    loaded = folder.load(
        f"""
        {SMALL.strip().replace(chr(10), chr(10) + " " * 8)}
        tools = ["TOOLS:get_order", "TOOLS:refund"]

        [rules.refund]
        timeout_s = 8
        in_doubt = "ask"

        [rules."get_*"]
        effect = "once"
        """
    )
    read, once = loaded.spec().tools
    assert (once.effect, once.timeout_s, once.in_doubt, once.parallel) == ("once", 8, "ask", False)
    assert (read.effect, read.parallel, read.timeout_s) == ("once", False, 300), "a class brings its own default"
    assert [tool.settle_s for tool in loaded.tools if hasattr(tool, "settle_s")] == [0, 4], "it fits in the timeout"


def test_sources_are_the_same_values_as_in_python(folder: Folder) -> None:
    loaded = folder.load(
        """
        id = "shop"
        model = "openai:gpt-5"

        [mcp.orders]
        command = ["orders-server", "--fast"]
        env = { TOKEN = "${ORDERS_TOKEN}" }
        cwd = "servers"
        tools = ["get_*"]
        connect_timeout_s = 9

        [mcp.orders.rules."get_*"]
        effect = "read"
        retry = { attempts_max = 2 }

        [mcp.away]
        url = "https://mcp.example.com/mcp"
        headers = { Authorization = "Bearer ${AWAY}" }

        [mcp.away.oauth]
        client_id = "shop"
        client_secret = "${AWAY_SECRET}"
        issuer = "https://login.example.com"

        [http.stock]
        document = "orders.json"
        """
    )
    orders, away, stock = loaded.tools
    assert orders == McpServer(
        "orders",
        command=["orders-server", "--fast"],
        env={"TOKEN": "${ORDERS_TOKEN}"},
        cwd=str(folder.path / "servers"),
        tools=["get_*"],
        connect_timeout_s=9,
        rules={"get_*": ToolRules(effect="read", retry=RetryPolicy(attempts_max=2))},
    )
    assert away == McpServer(
        "away",
        url="https://mcp.example.com/mcp",
        headers={"Authorization": "Bearer ${AWAY}"},
        oauth=ClientCredentials("shop", "${AWAY_SECRET}", "https://login.example.com"),
    )
    assert isinstance(stock, OpenApiTools)


def test_a_command_runs_in_the_files_folder(folder: Folder) -> None:
    (server,) = folder.load(f'{SMALL}[mcp.orders]\ncommand = ["./server"]').tools
    assert isinstance(server, McpServer)
    assert server.cwd == str(folder.path)


def test_wherever_an_agent_is_named_a_file_may_be(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(WHOLE)
    monkeypatch.chdir(folder.path.parent)
    assert load_agent(f"{folder.path.name}/shop.toml").id == "shop", "its tools are found beside it"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^AGENT: .*none\.toml cannot be read: No such file"):
        load_agent(str(tmp_path / "none.toml"))


def test_a_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'id = "caf\xe9"\n')
    with pytest.raises(ConfigurationError, match=r"latin\.toml: is not UTF-8 at byte 9; save it as UTF-8"):
        load_agent(str(tmp_path / "latin.toml"))


def test_lines_are_found_in_every_form_of_toml() -> None:
    text = '''# a comment = 1
a = """
not = "here"
""" # and
"quoted key" = 'x = 1' # y = 2
b.c = [1, # one
  "two ]",
  { d = 1, e = [2] },
]
f = { g = { h = 1 }, i = 2 }
t = 2020-01-01T00:00:00Z

[k.'l m']
n = """\\""""" # quotes at the end
o = \'\'\'
\'\'\'
[[p]]
q = 1
[[p]]
q = 2
[p.r]
s = 1
'''
    assert lines_of(text) == {
        ("a",): 2,
        ("quoted key",): 5,
        ("b",): 6,
        ("b", "c"): 6,
        ("b", "c", 0): 6,
        ("b", "c", 1): 7,
        ("b", "c", 2): 8,
        ("b", "c", 2, "d"): 8,
        ("b", "c", 2, "e"): 8,
        ("b", "c", 2, "e", 0): 8,
        ("f",): 10,
        ("f", "g"): 10,
        ("f", "g", "h"): 10,
        ("f", "i"): 10,
        ("t",): 11,
        ("k",): 13,
        ("k", "l m"): 13,
        ("k", "l m", "n"): 14,
        ("k", "l m", "o"): 15,
        ("p",): 17,
        ("p", 0): 17,
        ("p", 0, "q"): 18,
        ("p", 1): 19,
        ("p", 1, "q"): 20,
        ("p", 1, "r"): 21,
        ("p", 1, "r", "s"): 22,
    }
