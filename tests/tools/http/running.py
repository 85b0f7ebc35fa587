"""The service of these tests, running; and short ways to open tools over it and to ask its log."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from perdure.core.ports import Call, ToolPort
from perdure.core.tool_rules import ToolRules
from perdure.tools.http import OpenApiTools

SERVICE = Path(__file__).with_name("service.py")
KEY = "task-1/1/0"


class Service:
    """The process, and its log. It can be started again on the same port."""

    def __init__(self, home: Path) -> None:
        self.log = home / "service.log"
        self.document = home / "openapi.json"
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", SERVICE, self.log, str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "DOCUMENT": str(self.document)},
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self.wait_dead()

    def wait_dead(self) -> None:
        """Wait until it has died, however."""
        process = self._process
        if process is not None and process.stdout is not None:
            process.wait()
            process.stdout.close()

    def lines(self, what: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.log.read_text().splitlines()) if line["what"] == what]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.lines("request")

    @property
    def effects(self) -> list[str]:
        """The keys of the effects that were applied, in order."""
        return [line["key"] for line in self.lines("effect") if not line.get("closed")]


@contextlib.contextmanager
def running(home: Path) -> Iterator[Service]:
    service = Service(home)
    service.start()
    try:
        yield service
    finally:
        service.kill()


def document(paths: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "shop", "version": "1"}, "paths": paths, **more}


OK: Any = {"responses": {"200": {"description": "well"}}}


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}, **more}


def body(*required: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


TROUBLE = parameter("X-Trouble", "header")
SHOP = document(
    {
        "/refunds": {
            "post": {
                "operationId": "refund",
                "summary": "Pay back.",
                "parameters": [TROUBLE],
                "requestBody": body("order_id", order_id={"type": "string"}, amount={"type": "number"}),
                **OK,
            }
        },
        "/payments": {
            "post": {
                "operationId": "pay",
                "parameters": [TROUBLE],
                "requestBody": body("order_id", order_id={"type": "string"}),
                **OK,
            }
        },
        "/refunds/{key}": {"get": {"operationId": "find_refund", "parameters": [parameter("key", "path")], **OK}},
        "/refunds/{key}/closed": {"put": {"operationId": "close", "parameters": [parameter("key", "path")], **OK}},
        "/orders/{order_id}": {
            "parameters": [parameter("order_id", "path"), TROUBLE],
            "get": {"operationId": "get_order", **OK},
            "put": {"operationId": "put_order", **OK},
            "delete": {"operationId": "delete_order", **OK},
        },
        "/status/{status}": {
            "parameters": [parameter("status", "path"), parameter("say")],
            "get": {"operationId": "read_status", **OK},
            "put": {"operationId": "put_status", **OK},
            "post": {"operationId": "post_status", **OK},
            "delete": {"operationId": "delete_status", **OK},
        },
        "/moved": {
            "parameters": [parameter("to"), parameter("status")],
            "get": {"operationId": "moved", **OK},
            "put": {"operationId": "put_moved", **OK},
        },
        "/file": {
            "parameters": [parameter("times"), parameter("type"), TROUBLE],
            "get": {"operationId": "get_file", **OK},
            "head": {"operationId": "head_file", **OK},
        },
        "/text": {"get": {"operationId": "get_text", "parameters": [parameter("say"), parameter("times")], **OK}},
    }
)
RULES = {"refund": ToolRules(check="close", settle_s=0, timeout_s=5), "*": ToolRules(timeout_s=5)}


class Tools:
    """Opened tools, by name without the source's, and one call of each kind."""

    def __init__(self, tools: tuple[ToolPort, ...]) -> None:
        self.ports = {tool.spec.name.removeprefix("shop."): tool for tool in tools}

    async def call(self, tool: str, attempt: int = 1, trouble: str = "", **arguments: Any) -> Any:
        port = self.ports[tool]
        if trouble:
            arguments["X-Trouble"] = trouble
        assert port.problem(arguments) is None, port.problem(arguments)
        return await port.invoke(arguments, self.of(tool, attempt))

    async def check(self, tool: str) -> Any:
        return await self.ports[tool].check(self.of(tool, 1))

    def of(self, tool: str, attempt: int) -> Call:
        return Call(idempotency_key=KEY, attempt=attempt, task_id="task-1", tool=self.ports[tool].spec.name)


@contextlib.asynccontextmanager
async def opened(
    given: Any = SHOP, *, base_url: str | None = None, rules: Mapping[str, ToolRules] = RULES, **more: Any
) -> AsyncIterator[Tools]:
    async with OpenApiTools("shop", given, base_url=base_url, rules=rules, **more).opened() as tools:
        yield Tools(tools)
