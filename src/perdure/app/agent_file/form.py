"""The form of an agent file: its tables and keys, held strictly, since TOML has types of its own.

Names are those of Python: what `Agent`, `McpServer` and `OpenApiTools` take. A key that is left out is not given to
them, so that defaults stand in one place.
"""

from typing import Final, Literal

from pydantic import Field

from perdure.core.agent import Budget, RetryPolicy
from perdure.core.content import Frozen
from perdure.core.rulebook import ApprovalRule
from perdure.core.tool_rules import ToolRules


class OauthForm(Frozen):
    """`[mcp.NAME.oauth]`: how a worker gets tokens for a server at a URL."""

    client_id: str
    client_secret: str
    issuer: str
    scope: str | None = None


class McpForm(Frozen):
    """`[mcp.NAME]`: an MCP server, started by a command or reached at a URL."""

    command: list[str] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    oauth: OauthForm | None = None
    tools: list[str] | None = None
    connect_timeout_s: float | None = Field(default=None, gt=0)
    rules: dict[str, ToolRules] | None = None


class HttpForm(Frozen):
    """`[http.NAME]`: a service that an OpenAPI document describes."""

    document: str
    base_url: str | None = None
    headers: dict[str, str] | None = None
    tools: list[str] | None = None
    networks: list[str] | None = None
    rules: dict[str, ToolRules] | None = None


class AgentForm(Frozen):
    """The top of the file: the agent itself."""

    id: str
    model: str
    fallbacks: list[str] | None = None
    description: str | None = None
    version: str | None = None
    instructions: str | None = None
    instructions_file: str | None = None
    tools: list[str] = Field(default_factory=list)
    after_answer: Literal["completed", "input_required"] | None = None
    on_unanswered: Literal["input_required", "fail"] | None = None
    asks: bool | None = None
    model_timeout_s: float | None = Field(default=None, gt=0)
    model_heartbeat_timeout_s: float | None = Field(default=None, gt=0)
    model_retry: RetryPolicy | None = None
    budget: Budget | None = None
    rules: dict[str, ToolRules] = Field(default_factory=dict)
    approvals: list[ApprovalRule] = Field(default_factory=list)
    asks_expire_in_s: float | None = None
    mcp: dict[str, McpForm] = Field(default_factory=dict)
    http: dict[str, HttpForm] = Field(default_factory=dict)


EXAMPLES: Final[dict[str, str]] = {
    "id": 'id = "shop"',
    "model": 'model = "openai:gpt-5"',
    "fallbacks": 'fallbacks = ["anthropic:claude-sonnet-4-5"]',
    "description": 'description = "Helps customers with their orders."',
    "version": 'version = "1"',
    "instructions": 'instructions = "Help customers with their orders."',
    "instructions_file": 'instructions_file = "shop.md"',
    "tools": 'tools = ["shop_tools:get_order", "shop_tools:refund"]',
    "after_answer": 'after_answer = "completed"',
    "on_unanswered": 'on_unanswered = "input_required"',
    "asks": "asks = true",
    "model_timeout_s": "model_timeout_s = 600",
    "model_heartbeat_timeout_s": "model_heartbeat_timeout_s = 30",
    "model_retry": "[model_retry] with attempts_max = 5",
    "budget": "[budget] with turns_max = 50",
    "budget.turns_max": "turns_max = 50",
    "budget.tokens_max": "tokens_max = 200_000",
    "budget.cost_usd_max": "cost_usd_max = 2.50",
    "budget.wall_s_max": "wall_s_max = 600",
    "rules": '[rules."refund"] with timeout_s = 60',
    "approvals": '[[approvals]] with then = "ask", tool = "refund"',
    "approvals.then": 'then = "ask"',
    "approvals.tool": 'tool = "refund"',
    "approvals.effect": 'effect = "once"',
    "approvals.when": 'when = "amount > 100"',
    "approvals.reason": 'reason = "It is more than 100."',
    "approvals.expires_in_s": "expires_in_s = 86_400",
    "asks_expire_in_s": "asks_expire_in_s = 86_400",
    "mcp": '[mcp.orders] with command = ["python", "orders_server.py"]',
    "mcp.*": '[mcp.orders] with command = ["python", "orders_server.py"]',
    "mcp.*.command": 'command = ["python", "orders_server.py"]',
    "mcp.*.env": 'env = { ORDERS_TOKEN = "${ORDERS_TOKEN}" }',
    "mcp.*.cwd": 'cwd = "servers"',
    "mcp.*.url": 'url = "https://mcp.example.com/mcp"',
    "mcp.*.oauth": '[mcp.orders.oauth] with client_id = "shop"',
    "*.client_id": 'client_id = "shop"',
    "*.client_secret": 'client_secret = "${ORDERS_SECRET}"',
    "*.scope": 'scope = "orders:read"',
    "*.issuer": 'issuer = "https://login.example.com"',
    "mcp.*.connect_timeout_s": "connect_timeout_s = 30",
    "http": '[http.orders] with document = "orders.json"',
    "http.*": '[http.orders] with document = "orders.json"',
    "http.*.document": 'document = "orders.json"',
    "http.*.base_url": 'base_url = "https://orders.example.com"',
    "http.*.networks": 'networks = ["10.1.0.0/16"]',
    "*.*.headers": 'headers = { Authorization = "Bearer ${ORDERS_TOKEN}" }',
    "*.*.tools": 'tools = ["get_*", "refund"]',
    "*.*.rules": '[mcp.orders.rules."get_*"] with effect = "read"',
    "*.effect": 'effect = "idempotent"',
    "*.parallel": "parallel = true",
    "*.in_doubt": 'in_doubt = "ask"',
    "*.timeout_s": "timeout_s = 60",
    "*.heartbeat_timeout_s": "heartbeat_timeout_s = 30",
    "*.settle_s": "settle_s = 5",
    "*.check": 'check = "find_refund"',
    "*.failed": 'failed = "did_not_happen"',
    "*.retry": "retry = { attempts_max = 3 }",
    "*.attempts_max": "attempts_max = 3",
    "*.first_ms": "first_ms = 500",
    "*.factor": "factor = 2.0",
    "*.delay_max_ms": "delay_max_ms = 60_000",
}
"""A right value for every key, for messages. `*` stands for any one name, and at the beginning for all before it."""


def example_of(path: tuple[str | int, ...]) -> str:
    """Return the example for a key, or for what an element or a value of it belongs to; empty where there is none."""
    keys = [key for key in path if isinstance(key, str)]
    for end in range(len(keys), 0, -1):
        for pattern, example in EXAMPLES.items():
            if _fits(keys[:end], pattern.split(".")):
                return example
    return ""


def _fits(keys: list[str], pattern: list[str]) -> bool:
    if len(keys) == len(pattern):
        return all(wanted in {"*", key} for key, wanted in zip(keys, pattern, strict=True))
    return pattern[0] == "*" and len(keys) > len(pattern) and _fits(keys[-len(pattern) + 1 :], pattern[1:])
