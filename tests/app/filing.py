"""Agent files for tests: a folder with a module of tools, in which a test writes its TOML."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from perdure import Agent
from perdure.app.agent_file import AgentFileError, load_agent_file

TOOLS = '''
from perdure import Check, tool
from perdure.testing import say, scripted


def find_refund(key: str) -> Check:
    return Check.unknown()


@tool(effect="read")
def get_order(order_id: str) -> str:
    """Look an order up."""
    return order_id


@tool(check=find_refund)
def refund(order_id: str) -> str:
    """Pay."""
    return order_id


@tool(name="refund")
def refund_too(order_id: str) -> str:
    """Pay again."""
    return order_id


def plain(order_id: str) -> str:
    return order_id


model = scripted(say("hello"), name="first")
second = scripted(say("hello"), name="second")
'''

DOCUMENT = """
{"openapi": "3.1.0", "info": {"title": "Orders", "version": "1"}, "servers": [{"url": "http://127.0.0.1:1"}],
 "paths": {"/orders": {"get": {"operationId": "list_orders", "responses": {"200": {"description": "They."}}}}}}
"""


class Folder:
    """The folder: `tools` names its module, which no other test's has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tools = f"tools_{path.name.replace('-', '_')}"
        (path / f"{self.tools}.py").write_text(TOOLS)
        (path / "orders.json").write_text(DOCUMENT)
        (path / "shop.md").write_text("Help customers.\n")

    def write(self, text: str, name: str = "shop.toml") -> Path:
        """Write a file; `TOOLS` in it stands for the module's name."""
        file = self.path / name
        file.write_text(dedent(text).strip().replace("TOOLS", self.tools) + "\n")
        return file

    def load(self, text: str) -> Agent:
        """Return the agent of a file."""
        return load_agent_file(self.write(text))

    def refused(self, text: str) -> list[str]:
        """Return what is told of a file, a problem each, with `TOOLS` and without the folder."""
        with pytest.raises(AgentFileError) as error:
            self.load(text)
        said = str(error.value).replace(self.tools, "TOOLS")
        return said.replace(f"{self.path}/", "").splitlines()

    def forget(self) -> None:
        """Forget the module."""
        sys.modules.pop(self.tools, None)
