"""`perdure check`: what an agent can do, how each tool is treated, and everything that is wrong with it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.filing import Folder
from tests.cli.desk import Desk, Finished

SHOP = """
id = "shop"
description = "Helps customers."
model = "python:TOOLS:model"
fallbacks = ["python:TOOLS:second"]
tools = ["TOOLS:get_order", "TOOLS:refund"]

[rules.refund]
timeout_s = 8
in_doubt = "ask"

[budget]
turns_max = 7
cost_usd_max = 2.5
"""

SERVER = """
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("orders")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def get(order_id: str) -> str:
    "Look an order up."
    return order_id


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def label(order_id: str) -> str:
    "Print its label."
    return order_id


@server.tool()
def refund(order_id: str) -> str:
    "Pay back."
    return order_id


@server.tool()
def find(key: str) -> str:
    "Say what became of a key."
    return "unknown"


@server.tool()
def ship(order_id: str) -> str:
    "Ship it."
    return order_id


server.run("stdio")
"""


@pytest.fixture
def folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(desk.folder)
    made = Folder(desk.folder)
    yield made
    made.forget()


def checked(desk: Desk, folder: Folder, text: str, *options: str) -> Finished:
    return desk.here("check", folder.write(text).name, *options)


def test_it_says_how_each_tool_is_treated(desk: Desk, folder: Folder) -> None:
    done = checked(desk, folder, SHOP)
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "model first: ready, as far as can be told without asking it" in lines
    assert "fallback second: ready, as far as can be told without asking it" in lines
    assert "budget 7 turns an answer, 2.5 US dollars" in lines
    assert "get_order read declared yes 300 s up to 3 called again" in lines
    assert "refund once declared no 8 s begun once ask find_refund after 4 s, else ask a person" in lines


def test_programs_get_one_object(desk: Desk, folder: Folder) -> None:
    (told,) = checked(desk, folder, SHOP, "--json").objects
    assert (told["agent"], told["ok"], told["problems"]) == ("shop", True, [])
    assert [model["name"] for model in told["models"]] == ["first", "second"]
    tools = {tool["name"]: tool for tool in told["tools"]}
    assert tools["refund"]["check"] == "find_refund"
    assert tools["get_order"]["parameters"]["required"] == ["order_id"]


def test_an_agent_in_python_is_checked_the_same(desk: Desk, folder: Folder) -> None:
    (desk.folder / f"{folder.tools}.py").write_text(
        "from perdure import Agent\nfrom perdure.testing import say, scripted\n"
        "agent = Agent('here', model=scripted(say('x')), fallbacks=['opnai:gpt-5'])\n"
    )
    done = desk.here("check", f"{folder.tools}:agent")
    assert done.code == 2
    assert "agent     here, version 1" in done.out
    assert "none: it can only talk" in done.out
    assert done.err == (
        f"error: {folder.tools}:agent: model opnai:gpt-5: 'opnai:gpt-5' cannot be opened: Unknown model: opnai:gpt-5; "
        "did you mean 'openai:gpt-5'?\n"
    )


def test_a_broken_file_is_told_whole(desk: Desk, folder: Folder) -> None:
    broken = 'id = "shop"\nmodle = "x"\n[budget]\nturns_max = 0\n'
    done = checked(desk, folder, broken)
    assert done.code == 2
    assert done.err.startswith("error: shop.toml:1: model: is missing")
    assert "shop.toml:2: modle: there is no such key; did you mean 'model'?" in done.err
    assert "shop.toml:4: budget.turns_max: 0 is too small" in done.err
    (told,) = checked(desk, folder, broken, "--json").objects
    assert told["ok"] is False
    assert [(p["line"], p["key"]) for p in told["problems"]] == [(1, "model"), (2, "modle"), (4, "budget.turns_max")]


def test_what_cannot_be_opened_is_told_at_its_place(
    desk: Desk, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = checked(
        desk,
        folder,
        """
        id = "shop"
        model = "openai:gpt-5"
        fallbacks = [
          "python:TOOLS:model",
          "opnai:gpt-5",
        ]

        [mcp.orders]
        command = ["no-such-server-anywhere"]

        [mcp.stock]
        command = ["also-not-there"]
        env = { TOKEN = "${NO_SUCH_VARIABLE_HERE}" }
        """,
    )
    assert done.code == 2
    told = done.err.splitlines()
    assert [line.split(": ")[1:3] for line in told] == [
        ["shop.toml:2", "model"],
        ["shop.toml:5", "fallbacks[2]"],
        ["shop.toml:8", "mcp.orders"],
        ["shop.toml:11", "mcp.stock"],
    ]
    assert "OPENAI_API_KEY" in told[0]
    assert "no-such-server-anywhere" in told[2]
    assert "NO_SUCH_VARIABLE_HERE" in told[3]
    assert "fallback  first: ready" in done.out


@pytest.mark.slow
def test_servers_are_asked_and_their_claims_are_told_from_rules(desk: Desk, folder: Folder) -> None:
    (desk.folder / "orders_server.py").write_text(SERVER)
    (told,) = checked(
        desk,
        folder,
        f"""
        id = "shop"
        model = "python:TOOLS:model"

        [mcp.orders]
        command = ["{sys.executable}", "orders_server.py"]
        tools = ["get", "label", "refund", "find", "ship"]

        [mcp.orders.rules.refund]
        check = "find"

        [mcp.orders.rules.ship]
        effect = "idempotent"

        [http.stock]
        document = "orders.json"
        networks = ["127.0.0.0/8"]
        """,
        "--json",
    ).objects
    assert told["problems"] == []
    tools: dict[str, Any] = {tool["name"]: tool for tool in told["tools"]}
    assert {name: (tool["effect"], tool["effect_from"]) for name, tool in tools.items()} == {
        "orders.get": ("read", "hint"),
        "orders.label": ("idempotent", "hint"),
        "orders.refund": ("once", "default"),
        "orders.find": ("once", "default"),
        "orders.ship": ("idempotent", "rule"),
        "stock.list_orders": ("read", "hint"),
    }
    assert tools["orders.refund"]["check"] == "orders.find"
    assert [(source["name"], source["kind"], source["tools"]) for source in told["sources"]] == [
        ("orders", "MCP", 5),
        ("stock", "HTTP", 1),
    ]


def test_a_folder_is_no_agent(desk: Desk, folder: Folder) -> None:
    (desk.folder / "dir.toml").mkdir()
    done = desk.here("check", "dir.toml")
    assert (done.code, Path("dir.toml").is_dir()) == (2, True)
    assert done.err == "error: AGENT: dir.toml cannot be read: Is a directory; name a TOML file, or module:agent\n"
