"""Commands take an agent's file where they take an agent: run, go on by the task's id, serve no less."""

import sys
from pathlib import Path

import pytest

from tests.cli.desk import Desk

pytestmark = pytest.mark.slow

WITHIN_S = 180.0
"""Each of a command's four worker processes starts a server of its own, whose SDK takes seconds to import."""

TOOLS = """
from perdure.testing import call, last_result, say, scripted

model = scripted(
    call("orders.look_up", {"order_id": "A-1"}),
    call("ask_participant", {"question": "Pay?"}),
    call("orders.pay", {"order_id": "A-1"}),
    lambda transcript: say(f"It is {last_result(transcript)}."),
    name="scripted",
)
"""

SERVER = """
import os
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("orders")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(order_id: str) -> str:
    "Look an order up."
    return f"{order_id} of {os.environ['SHOP']}"


@server.tool()
def pay(order_id: str) -> str:
    "Pay back."
    with Path("paid").open("a") as file:
        print(order_id, file=file)
    return "paid"


server.run("stdio")
"""

AGENT = """
id = "filed"
model = "python:filed_tools:model"

[mcp.orders]
command = ["{python}", "orders_server.py"]
env = {{ SHOP = "${{SHOP_NAME}}" }}
tools = ["look_up", "pay"]

[mcp.orders.rules.pay]
timeout_s = 30
"""


@pytest.fixture
def shop(desk: Desk) -> Path:
    """A folder below the one that commands run in; what the agent's file names is found beside it."""
    folder = desk.folder / "shop"
    folder.mkdir()
    (folder / "filed_tools.py").write_text(TOOLS)
    (folder / "orders_server.py").write_text(SERVER)
    (folder / "agent.toml").write_text(AGENT.format(python=sys.executable))
    return folder


def test_a_task_of_a_file_runs_and_goes_on_by_its_id_alone(desk: Desk, shop: Path) -> None:
    asked = desk.perdure("run", "shop/agent.toml", "Pay A-1 back.", "--json", within_s=WITHIN_S, SHOP_NAME="Delft")
    assert (asked.code, asked.outcome["outcome"]) == (1, "waiting"), asked.err
    looked = [line["text"] for line in asked.objects if line.get("kind") == "tool.finished"]
    assert looked == ["A-1 of Delft"]
    done = desk.perdure("run", "--resume", asked.task_id, stdin="yes\n", within_s=WITHIN_S, SHOP_NAME="Delft")
    assert done.code == 0, done.err
    assert "It is paid." in done.out
    assert (shop / "paid").read_text().split() == ["A-1"], "in the file's folder, and once"
    shown = desk.here("show", asked.task_id, "--json").objects[0]
    assert {(effect["tool"], effect["effect"]) for effect in shown["effects"]} == {
        ("orders.look_up", "read"),
        ("orders.pay", "once"),
    }


def test_a_broken_file_starts_nothing(desk: Desk, shop: Path) -> None:
    (shop / "agent.toml").write_text('id = "filed"\nmodle = "x"\n')
    done = desk.perdure("run", "shop/agent.toml", "hello")
    assert done.code == 2
    assert "shop/agent.toml:2: modle: there is no such key; did you mean 'model'?" in done.err
    assert not desk.home.exists()
