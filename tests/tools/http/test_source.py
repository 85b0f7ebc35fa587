"""A service as a source: what is offered, whose word counts for where requests go, and what stays secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.core import http_limits
from perdure.core.errors import BegunError, ConfigurationError, OutcomeUnknown, ToolError, Unavailable
from perdure.core.tool_rules import ToolRules
from perdure.tools.http import OpenApiTools
from tests.tools.http.running import OK, SHOP, Service, body, document, opened, parameter

ONE = document({"/echo": {"get": {"operationId": "echo", **OK}, "post": {"operationId": "post", **OK}}})


async def names(given: Any = SHOP, **more: Any) -> list[str]:
    async with opened(given, base_url="https://shop.example", **{"rules": {}, **more}) as tools:
        return list(tools.ports)


async def test_tools_are_named_after_their_source_and_only_those_that_fit_are_offered() -> None:
    async with OpenApiTools("shop", SHOP, base_url="https://shop.example", tools=("get_*", "refund")).opened() as tools:
        assert [tool.spec.name for tool in tools] == [
            *("shop.refund", "shop.get_order", "shop.get_file", "shop.get_text")
        ]
        digests = {tool.spec.schema_digest for tool in tools}
        assert len(digests) == 4
        assert None not in digests


async def test_a_task_knows_a_tool_by_what_calls_are_held_to() -> None:
    """B19: other words are the same tool; another parameter or another method is not."""

    async def registered(method: str = "post", summary: str = "Pay.", **properties: object) -> str | None:
        operation = {"operationId": "pay", "summary": summary, "requestBody": body("a", **properties), **OK}
        async with opened(document({"/pay": {method: operation}}), base_url="https://shop.example", rules={}) as tools:
            return tools.ports["pay"].spec.schema_digest

    text, number = {"type": "string"}, {"type": "number"}
    first = await registered(a=text)
    assert await registered(a=text, summary="Pay back.") == first
    changed = {await registered(a=number), await registered(a=text, b=text), await registered("put", a=text)}
    assert len(changed - {first}) == 3


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"name": "1shop"}, "http.1shop, name: use a letter"),
        ({"tools": ["refnd"]}, "http.shop, tools: there is no operation 'refnd'; there are refund"),
        ({"tools": ["x_*"]}, "http.shop, tools: no operation fits 'x_\\*'"),
        (
            {"rules": {"get_ordr": ToolRules()}},
            "http.shop, rules: there is no operation 'get_ordr'; there are get_order",
        ),
        ({"rules": {"refund": ToolRules(check="find")}}, "tool 'shop.refund', check: there is no operation 'find'"),
        (
            {"rules": {"refund": ToolRules(check="post_status")}},
            "check: 'post_status' is a POST; a check is asked again",
        ),
        ({"rules": {"refund": ToolRules(check="get_file")}}, "check: 'get_file' has no parameter for the key"),
        ({"rules": {"refund": ToolRules(check="close", settle_s=400)}}, "tool 'shop.refund', settle_s"),
        ({"rules": {"get_order": ToolRules(effect="read", in_doubt="ask")}}, "tool 'shop.get_order', in_doubt"),
        ({"networks": ["10.0.0.1/8"]}, "http.shop, networks: .*name networks as in"),
        ({"headers": {"X A": "1"}}, "http.shop, headers: 'X A' is no header's name"),
        ({"headers": {"content-length": "1"}}, "http.shop, headers: 'content-length' is set for each request"),
        ({"headers": {"idempotency-key": "1"}}, "http.shop, headers: 'idempotency-key' is set for each request"),
        ({"headers": {"X-A": "a\nb"}}, "http.shop, headers.X-A: must be visible ASCII"),
        (
            {"headers": {"X-A": "${PERDURE_TEST_MISSING}"}},
            "http.shop, headers.X-A: the environment variable PERDURE_TEST_MISSING",
        ),
        ({"base_url": "shop.example"}, "http.shop, base_url: 'shop.example' must begin with https://"),
        ({"base_url": "https://a:b@shop.example"}, "http.shop, base_url: .*hold no user"),
        ({"base_url": None}, "http.shop, base_url: is missing: the document's server is '/'"),
        ({"document": "/nowhere/shop.yaml"}, "http.shop, document: cannot be read"),
        ({"document": {"openapi": "3.1.0"}}, "http.shop, document: is no OpenAPI 3.1.0: info: Field required"),
    ],
)
async def test_what_cannot_work_is_refused_with_its_place_and_the_fix(more: dict[str, Any], told: str) -> None:
    given = {"name": "shop", "document": SHOP, "base_url": "https://shop.example", **more}
    name, served = given.pop("name"), given.pop("document")
    with pytest.raises(ConfigurationError, match=told):
        async with OpenApiTools(name, served, **given).opened():
            pass


async def test_an_operation_that_cannot_be_offered_is_refused_where_it_is_named() -> None:
    given = document({"/x": {"post": {"operationId": "x", "requestBody": {"content": {"image/png": {}}}, **OK}}})
    assert await names(given) == []
    with pytest.raises(ConfigurationError, match="tools: 'x' cannot be offered: POST /x has a body in image/png"):
        await names(given, tools=("x",))


async def test_an_operation_whose_schema_is_none_is_left_out_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    """A document of hundreds must not fail for one of them."""
    wrong = parameter("a", schema={"type": "number", "exclusiveMinimum": True})
    given = document({**ONE["paths"], "/x": {"get": {"operationId": "x", "parameters": [wrong], **OK}}})
    assert await names(given) == ["echo", "post"]
    assert "http.shop: not offered: GET /x has a schema that is no JSON schema" in caplog.text
    with pytest.raises(ConfigurationError, match="tools: 'x' cannot be offered: GET /x has a schema"):
        await names(given, tools=("x",))


async def test_a_large_catalogue_must_be_narrowed() -> None:
    count = http_limits.TOOLS_PER_SOURCE_MAX + 1
    many = document({f"/x{n}": {"get": {"operationId": f"x{n}", **OK}} for n in range(count)})
    with pytest.raises(ConfigurationError, match=f"http.shop, tools: {count} operations fit, at most"):
        await names(many)
    assert len(await names(many, tools=("x1*",))) == 40


async def test_two_operations_of_one_name_are_refused() -> None:
    twice = document({"/x": {"get": {"operationId": "a b", **OK}}, "/y": {"get": {"operationId": "a_b", **OK}}})
    with pytest.raises(ConfigurationError, match="two operations named 'a_b'"):
        await names(twice)


async def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text("openapi: 3.1.0\ninfo: {title: a, version: '1'}\nservers: [{url: 'https://shop.example'}]\n"
                    "paths:\n  /x: {get: {operationId: x, responses: {200: {description: ok}}}}\n")  # fmt: skip
    async with OpenApiTools("shop", path).opened() as (tool,):
        assert tool.spec.name == "shop.x"


# --- whose word counts ------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_what_the_operator_wrote_may_lead_inside(service: Service) -> None:
    served = {
        **ONE,
        "servers": [{"url": "http://127.0.0.1:{port}/", "variables": {"port": {"default": str(service.port)}}}],
    }
    for given, base_url in ((served, None), (ONE, service.url)):
        async with opened(given, base_url=base_url, rules={}, headers={"X-Api-Key": "mine"}) as tools:
            assert (await tools.call("echo"))["headers"]["X-Api-Key"] == "mine"


@pytest.mark.slow
async def test_a_document_that_was_fetched_is_trusted_for_its_own_origin(service: Service) -> None:
    url = f"{service.url}/openapi.json"
    service.document.write_text(json.dumps(ONE))
    async with opened(url, rules={}, headers={"X-Api-Key": "mine"}) as tools:
        assert (await tools.call("echo"))["headers"]["X-Api-Key"] == "mine"
    assert service.requests[0]["headers"]["X-Api-Key"] == "mine"


@pytest.mark.slow
async def test_a_document_that_was_fetched_leads_nobody_inside(service: Service) -> None:
    """A name of the same machine is another origin; it may be reached only where the operator says so."""
    url = f"{service.url}/openapi.json"
    service.document.write_text(json.dumps({**ONE, "servers": [{"url": f"http://localhost:{service.port}"}]}))
    async with opened(url, rules={}) as tools:
        for call in ("echo", "post"):
            with pytest.raises(
                ToolError, match="not public; give its address as base_url, or name its network in networks"
            ):
                await tools.call(call)
    assert [request["path"] for request in service.requests] == ["/openapi.json"]
    async with opened(url, rules={}, networks=("127.0.0.0/8", "::1/128")) as tools:
        assert (await tools.call("echo"))["path"] == "/echo"


@pytest.mark.slow
async def test_a_document_that_was_fetched_has_no_secrets_sent_elsewhere(service: Service) -> None:
    url = f"{service.url}/openapi.json"
    service.document.write_text(json.dumps({**ONE, "servers": [{"url": f"http://localhost:{service.port}"}]}))
    with pytest.raises(ConfigurationError, match=r"base_url: is missing: .*your headers go only where you say"):
        async with opened(url, rules={}, headers={"X-Api-Key": "mine"}):
            pass
    async with opened(url, rules={}, base_url=f"http://localhost:{service.port}", headers={"X-Api-Key": "mine"}):
        pass
    assert "X-Api-Key" not in service.requests[-1]["headers"]


@pytest.mark.slow
async def test_a_document_that_cannot_be_fetched_is_said_so(service: Service) -> None:
    with pytest.raises(ConfigurationError, match="document: its server answered 404 Not Found"):
        async with opened(f"{service.url}/nothing", rules={}):
            pass
    for status in (408, 429, 500, 503):
        with pytest.raises(Unavailable, match=f"document: cannot be fetched: its server answered {status}"):
            async with opened(f"{service.url}/status/{status}", rules={}):
                pass
    service.kill()
    try:
        with pytest.raises(Unavailable, match="document: cannot be fetched"):
            async with opened(f"{service.url}/openapi.json", rules={}):
                pass
    finally:
        service.start()


# --- what stays secret ------------------------------------------------------------------------------------------

SECRET = "s3cr3t-value"


@pytest.mark.slow
async def test_secrets_come_from_the_environment_and_come_out_nowhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    paths = {
        **ONE["paths"],
        "/status/{status}": {
            "get": {"operationId": "fail", "parameters": [parameter("status", "path"), parameter("say")], **OK},
            "post": {"operationId": "fail_once", "parameters": [parameter("status", "path"), parameter("say")], **OK},
        },
    }
    base_url = f"{service.url}?api_key=${{SHOP_KEY}}"
    source = OpenApiTools("shop", document(paths), base_url=base_url, headers={"Authorization": "Bearer ${SHOP_KEY}"})
    assert SECRET not in repr(source) + repr(vars(source))
    async with opened(
        document(paths),
        base_url=base_url,
        rules={"*": ToolRules(timeout_s=5)},
        headers={"Authorization": "Bearer ${SHOP_KEY}"},
    ) as tools:
        said = await tools.call("echo")
        assert service.requests[0]["headers"]["Authorization"] == f"Bearer {SECRET}"
        assert service.requests[0]["path"] == f"/echo?api_key={SECRET}"
        assert said["headers"]["Authorization"] == "Bearer ${SHOP_KEY}"
        assert SECRET not in json.dumps(said)
        failures: tuple[tuple[str, str, type[Exception]], ...] = (
            ("fail", "404", ToolError),
            ("fail", "500", BegunError),
            ("fail_once", "500", OutcomeUnknown),
        )
        for tool, status, kind in failures:
            with pytest.raises(kind) as failed:
                await tools.call(tool, status=status, say=f"key {SECRET} is bad")
            assert "key ${SHOP_KEY} is bad" in str(failed.value)
            assert SECRET not in str(failed.value)
            with pytest.raises(kind) as failed:  # also where it stands on the edge of what is kept
                await tools.call(tool, status=status, say="x" * 1955 + f"{SECRET} is bad")
            assert "s3cr" not in str(failed.value)


@pytest.mark.parametrize(
    "more", [{"base_url": "https://me@shop.example/x?key=${SHOP_KEY}"}, {"document": "http://a b/x?key=${SHOP_KEY}"}]
)
async def test_an_address_that_cannot_be_is_told_without_its_secret(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    with pytest.raises(ConfigurationError, match=r"key=\$\{SHOP_KEY\}' (must begin|holds a space)") as failed:
        async with OpenApiTools("shop", **{"document": ONE, **more}).opened():
            pass
    assert SECRET not in str(failed.value)


@pytest.mark.slow
async def test_a_secret_in_a_path_comes_out_nowhere_and_a_hosts_name_is_none(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    monkeypatch.setenv("SHOP_HOST", f"127.0.0.1:{service.port}")
    async with opened(ONE, base_url="http://${SHOP_HOST}/echo/bot${SHOP_KEY}", rules={}) as tools:
        said = await tools.call("echo")
    assert service.requests[0]["path"] == f"/echo/bot{SECRET}/echo"
    assert said["path"] == "/echo/bot${SHOP_KEY}/echo"
    assert said["headers"]["Host"] == f"127.0.0.1:{service.port}"


@pytest.mark.slow
async def test_the_operators_headers_win_over_the_documents(service: Service) -> None:
    given = document({"/echo": {"get": {"operationId": "echo", "parameters": [parameter("x-tenant", "header")], **OK}}})
    async with opened(given, base_url=service.url, rules={}, headers={"X-Tenant": "mine", "accept": "*/*"}) as tools:
        assert tools.ports["echo"].schema.parameters["properties"] == {}
        headers = (await tools.call("echo"))["headers"]
        assert headers["X-Tenant"] == "mine"
        assert [(name, value) for name, value in headers.items() if name.lower() == "accept"] == [("accept", "*/*")]
