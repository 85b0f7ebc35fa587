"""Which tools of a server are offered, under which names and rules, and what is refused before any task begins."""

from typing import Any

import pytest

from perdure import Agent, McpServer, ToolRules
from perdure.core.errors import ConfigurationError, Unavailable
from perdure.testing import scripted
from tests.tools.mcp.shop import Shop, named

pytestmark = pytest.mark.slow

ALL = {
    "look_up",
    "put",
    "refund",
    "find_refund",
    "picture",
    "talk",
    "send_back",
    "spawn",
    "read_resource",
    "get_prompt",
}


async def test_tools_have_the_servers_name_and_the_class_that_it_claims(shop: Shop) -> None:
    async with shop.server().opened() as tools:
        assert {tool.spec.name for tool in tools} == {f"shop.{name}" for name in ALL}
        effects = {name: tool.spec.effect for name, tool in named(tools).items()}
        assert (effects["look_up"], effects["put"], effects["refund"]) == ("read", "idempotent", "once")
        assert (effects["read_resource"], effects["get_prompt"]) == ("read", "read")
        assert named(tools)["look_up"].schema.description == "Look a word up."
        assert named(tools)["look_up"].schema.parameters["required"] == ["word"]


async def test_rules_overrule_what_the_server_claims(shop: Shop) -> None:
    rules = {"put": ToolRules(effect="once", timeout_s=7, in_doubt="ask"), "*": ToolRules(parallel=False)}
    async with shop.server(rules=rules).opened() as tools:
        put, look_up = named(tools)["put"].spec, named(tools)["look_up"].spec
        assert (put.effect, put.timeout_s, put.in_doubt, put.parallel) == ("once", 7, "ask", False)
        assert (look_up.effect, look_up.parallel) == ("read", False)


async def test_only_what_the_patterns_allow_is_offered(shop: Shop) -> None:
    async with shop.server(tools=("*_up", "read_*")).opened() as tools:
        assert set(named(tools)) == {"look_up", "read_resource"}


async def test_a_large_catalogue_is_chosen_from_over_all_its_pages(shop: Shop) -> None:
    async with shop.odd("catalogue", tools=("tool_19?",)).opened() as tools:
        assert set(named(tools)) == {f"tool_{number}" for number in range(190, 200)}
    with pytest.raises(ConfigurationError, match="MCP server 'odd', tools: 200 of its 200 tools would be offered"):
        async with shop.odd("catalogue").opened():
            pass


async def test_a_tool_that_cannot_be_offered_is_left_out_unless_it_was_asked_for(shop: Shop) -> None:
    async with shop.odd("broken").opened() as tools:
        assert set(named(tools)) == {"good"}
    with pytest.raises(ConfigurationError, match=r"tool 'odd\.bad', schema: is no JSON schema"):
        async with shop.odd("broken", tools=("bad",)).opened():
            pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": ("look_upp",)}, "MCP server 'shop', tools: it has no tool 'look_upp'; did you mean 'look_up'?"),
        ({"rules": {"refunds": ToolRules()}}, "rules: it has no tool 'refunds'; did you mean 'refund'?"),
        ({"rules": {"refund": ToolRules(check="find")}}, "rules.refund.check: it has no tool 'find'"),
        ({"rules": {"refund": ToolRules(check="put")}}, "rules, check: 'put' cannot be asked with a key alone"),
        ({"rules": {"refund": ToolRules(settle_s=200)}}, "tool 'shop.refund', settle_s: 200"),
        ({"env": {"TOKEN": "${SHOP_NO_TOKEN}"}}, "env.TOKEN: the environment variable SHOP_NO_TOKEN is not set"),
        ({"cwd": "/nowhere/at/all"}, "cwd: there is no folder /nowhere/at/all"),
    ],
)
async def test_what_cannot_hold_is_refused_when_it_is_opened(shop: Shop, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        async with shop.server(**options).opened():
            pass
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give command, the program to run, or url"),
        ({"command": ("x",), "url": "https://x"}, "give command, the program to run, or url"),
        ({"command": "python x.py"}, "command: 'python x.py' is one text; give a list"),
        ({"url": "example.com"}, "url: 'example.com' is no URL"),
        ({"url": "https://x", "env": {"A": "b"}}, "env: is for a server with a command"),
        ({"command": ("x",), "headers": {"A": "b"}}, "headers: is for a server with a URL"),
        ({"command": ("x",), "connect_timeout_s": 0}, "connect_timeout_s: is not a time"),
    ],
)
def test_what_cannot_be_reached_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        McpServer("shop", **options)
    assert said in str(refused.value)


async def test_a_program_that_is_not_there_is_refused_and_one_that_does_not_speak_is_unavailable() -> None:
    with pytest.raises(ConfigurationError, match="command: there is no program 'no-such-program' to run"):
        async with McpServer("shop", command=("no-such-program",)).opened():
            pass
    with pytest.raises(Unavailable, match="MCP server 'shop'"):
        async with McpServer("shop", command=("true",)).opened():
            pass
    with pytest.raises(Unavailable, match=r"did not answer within 0\.5 s"):
        async with McpServer("shop", command=("sleep", "60"), connect_timeout_s=0.5).opened():
            pass


async def test_an_agent_with_sources_is_opened_into_one_with_tools(shop: Shop) -> None:
    agent = Agent("clerk", model=scripted(), tools=[shop.server(tools=("look_up",))])
    async with agent.opened() as opened:
        assert [tool.spec.name for tool in opened.known_tools] == ["shop.look_up"]
        assert opened.spec().tools[0].schema_digest is not None
    with pytest.raises(ConfigurationError, match="two tools are named"):
        Agent("clerk", model=scripted(), tools=[shop.server(), shop.server()])
