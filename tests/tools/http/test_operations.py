"""From documents to what a model fills in, and from that to requests."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from perdure.core import http_limits
from perdure.core.tool_rules import ToolRules, ruled_spec
from perdure.tools.environment import Environment
from perdure.tools.http.client import Client
from perdure.tools.http.document import checked
from perdure.tools.http.operations import Operation, Unusable, operations_of
from perdure.tools.http.requests import Request, Unwritable, written
from perdure.tools.http.tool import HttpTool, Service
from perdure.tools.json_arguments import JsonArguments
from tests.tools.http.running import OK, body, document, parameter

BASE = "https://shop.example/v1"


def read(given: dict[str, Any], *headers: str) -> dict[str, Operation | Unusable]:
    found = operations_of("http.shop, document", checked("http.shop, document", given), frozenset(headers))
    return {each.name: each for each in found}


def operation(name: str, given: dict[str, Any], *headers: str) -> Operation:
    found = read(given, *headers)[name]
    assert isinstance(found, Operation), found
    return found


def one(method: str = "get", path: str = "/x", **more: Any) -> Operation:
    return operation("op", document({path: {method: {"operationId": "op", **more, **OK}}}))


def request(made: Operation, **arguments: Any) -> Request:
    assert JsonArguments("shop.op", made.schema).problem(arguments) is None
    return written(made, BASE, arguments)


# --- what a model sees ------------------------------------------------------------------------------------------


def test_everything_is_one_object_under_its_own_name() -> None:
    made = one(
        "post",
        "/orders/{order_id}/refunds",
        parameters=[parameter("order_id", "path"), parameter("dry run"), parameter("X-Shop", "header")],
        requestBody=body("amount", amount={"type": "number"}, reason={"type": "string"}),
    )
    assert made.schema == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "dry_run": {"type": "string"},
            "X-Shop": {"type": "string"},
            "amount": {"type": "number"},
            "reason": {"type": "string"},
        },
        "required": ["order_id", "amount"],
        "additionalProperties": False,
    }
    sent = request(made, order_id="A-1", dry_run="yes", amount=5, **{"X-Shop": "1"})
    assert (sent.method, sent.url) == ("POST", f"{BASE}/orders/A-1/refunds?dry%20run=yes")
    assert (sent.headers, json.loads(sent.body)) == (
        {"X-Shop": "1", "Content-Type": "application/json"},
        {"amount": 5},
    )


def test_names_that_meet_are_told_apart_by_their_place() -> None:
    made = one(
        "put",
        "/x/{id}",
        parameters=[parameter("id", "path"), parameter("id"), parameter("id", "header"), parameter("body")],
        requestBody=body("id", id={"type": "integer"}),
    )
    assert list(made.schema["properties"]) == ["id", "id_query", "id_header", "body", "body_body"]  # type: ignore[arg-type]
    sent = request(made, id="a", id_query="b", id_header="c", body_body={"id": 4})
    assert (sent.url, sent.headers["id"], sent.body) == (f"{BASE}/x/a?id=b", "c", b'{"id": 4}')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {},
    ],
)
def test_a_body_that_is_no_plain_object_is_given_as_one(schema: dict[str, Any]) -> None:
    made = one("post", requestBody={"required": True, "content": {"application/json": {"schema": schema}}})
    assert made.schema["properties"] == {"body": schema}
    assert made.schema["required"] == ["body"]


def test_an_optional_body_is_one_optional_property() -> None:
    made = one("post", requestBody={**body("a", a={"type": "string"}), "required": False})
    assert made.schema["required"] == []
    assert request(made).body == b""
    assert "Content-Type" not in request(made).headers
    assert request(made, body={"a": "x"}).body == b'{"a": "x"}'


def test_headers_of_the_harness_and_of_the_operator_are_not_offered() -> None:
    headers = [parameter(name, "header") for name in ("Authorization", "accept", "Idempotency-Key", "X-Tenant", "X-A")]
    made = operation("op", document({"/x": {"get": {"operationId": "op", "parameters": headers, **OK}}}), "x-tenant")
    assert made.schema["properties"] == {"X-A": {"type": "string"}}
    assert made.takes_key


def test_what_only_answers_hold_is_not_asked_for() -> None:
    made = one(
        "post",
        requestBody=body("id", "a", id={"type": "integer", "readOnly": True}, a={"type": "string"}),
    )
    assert (made.schema["properties"], made.schema["required"]) == ({"a": {"type": "string"}}, ["a"])


def test_references_come_along_once_and_may_lead_back_to_themselves() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": NODE}}}
    given = document(
        {"/x": {"$ref": "#/components/pathItems/X"}},
        components={
            "pathItems": {
                "X": {"post": {"operationId": "op", "requestBody": {"$ref": "#/components/requestBodies/B"}, **OK}}
            },
            "requestBodies": {"B": body("node", node=NODE, other={**NODE, "description": "the other"})},
            "schemas": {"Node": node},
        },
    )
    made = operation("op", given)
    there = {"$ref": "#/$defs/Node"}
    assert made.schema["properties"] == {"node": there, "other": {**there, "description": "the other"}}
    defs: Any = made.schema["$defs"]
    assert list(defs) == ["Node"]
    assert defs["Node"]["properties"]["parts"] == {"type": "array", "items": there}
    arguments = JsonArguments("shop.op", made.schema)
    assert arguments.problem({"node": {"parts": [{"parts": [{"name": "a"}]}]}}) is None
    assert "node.parts.0.parts.0.name: must be string" in str(
        arguments.problem({"node": {"parts": [{"parts": [{"name": 1}]}]}})
    )


NODE = {"$ref": "#/components/schemas/Node"}


def test_the_dialect_of_3_0_is_put_into_json_schemas_words() -> None:
    given = document(
        {
            "/x": {
                "post": {
                    "operationId": "op",
                    "requestBody": body(
                        a={"type": "string", "nullable": True, "enum": ["x"], "example": "x"},
                        b={
                            "type": "number",
                            "minimum": 0,
                            "exclusiveMinimum": True,
                            "maximum": 9,
                            "exclusiveMaximum": False,
                        },
                        c={"nullable": True, "allOf": [{"$ref": "#/components/schemas/Node"}]},
                        nullable={"type": "boolean"},
                    ),
                    **OK,
                }
            }
        },
        components={"schemas": {"Node": {"type": "object"}}},
    )
    made = operation("op", {**given, "openapi": "3.0.3"})
    assert made.schema["properties"] == {
        "a": {"type": ["string", "null"], "enum": ["x", None]},
        "b": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
        "c": {"anyOf": [{"allOf": [{"$ref": "#/$defs/Node"}]}, {"type": "null"}]},
        "nullable": {"type": "boolean"},
    }


def test_an_operation_without_id_is_named_after_method_and_path() -> None:
    assert list(read(document({"/pets/{petId}/": {"delete": {"parameters": [parameter("petId", "path")], **OK}}}))) == [
        "delete_pets_petId"
    ]


def test_a_description_is_cut_and_says_what_is_deprecated() -> None:
    made = one(summary="Do it.", description="Long. " * 1000, deprecated=True)
    assert made.description.startswith("Deprecated. Do it. Long. Long.")
    assert len(made.description.encode()) <= http_limits.DESCRIPTION_BYTES_MAX
    assert one().description == "GET /x"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"requestBody": {"content": {"image/png": {}}}}, "JSON, forms and texts are sent"),
        ({"requestBody": {"$ref": "bodies.json#/B"}}, "outside the document; bundle it into one"),
        ({"requestBody": {"$ref": "#/components/requestBodies/B"}}, "which is not in the document"),
        ({"parameters": [{"$ref": "#/paths/~1x~1{id}/post/parameters/0"}]}, "leads back to itself"),
        ({"parameters": []}, "does not declare the parameter 'id' of its path"),
        ({"requestBody": body(a={"enum": ["x" * http_limits.SCHEMA_BYTES_MAX]})}, "too much to show"),
        (
            {
                "requestBody": {
                    "content": {"multipart/form-data": {"schema": {"properties": {"f": {"format": "binary"}}}}}
                }
            },
            "takes a file",
        ),
    ],
)
def test_what_cannot_be_offered_is_given_with_its_reason(more: dict[str, Any], reason: str) -> None:
    given = {"operationId": "op", "parameters": [parameter("id", "path")], **more, **OK}
    found = read(document({"/x/{id}": {"post": given}, "/y": {"get": {"operationId": "fine", **OK}}}))
    unusable = found["op"]
    assert isinstance(unusable, Unusable)
    assert reason in unusable.reason
    assert unusable.reason.startswith("POST /x/{id} ")
    assert isinstance(found["fine"], Operation)


# --- what is sent -----------------------------------------------------------------------------------------------

LIST, PAIR = ["a", "b c"], {"x": 1, "y": True}


@pytest.mark.parametrize(
    ("place", "more", "value", "sent"),
    [
        ("query", {}, "a&b=c", "?p=a%26b%3Dc"),
        ("query", {}, LIST, "?p=a&p=b%20c"),
        ("query", {"explode": False}, LIST, "?p=a,b%20c"),
        ("query", {"style": "spaceDelimited", "explode": False}, LIST, "?p=a%20b%20c"),
        ("query", {"style": "pipeDelimited", "explode": False}, LIST, "?p=a%7Cb%20c"),
        ("query", {}, PAIR, "?x=1&y=true"),
        ("query", {"explode": False}, PAIR, "?p=x,1,y,true"),
        ("query", {"style": "deepObject"}, {"x": {"y": 1}, "z": [2, 3]}, "?p[x][y]=1&p[z]=2&p[z]=3"),
        ("query", {"allowReserved": True}, "a/b&c", "?p=a/b%26c"),
        ("query", {"content": {"application/json": {"schema": {}}}, "schema": None}, PAIR, '?p={"x": 1, "y": true}'),
        ("query", {}, 5.0, "?p=5"),
        ("query", {}, None, "?p="),
        ("path", {}, LIST, "/a,b%20c"),
        ("path", {}, PAIR, "/x,1,y,true"),
        ("path", {"explode": True}, PAIR, "/x=1,y=true"),
        ("path", {"style": "label", "explode": True}, LIST, "/.a.b%20c"),
        ("path", {"style": "matrix"}, LIST, "/;p=a,b%20c"),
        ("path", {"style": "matrix", "explode": True}, PAIR, "/;x=1;y=true"),
        ("path", {}, "../admin", "/..%2Fadmin"),
        ("path", {"allowReserved": True}, "../admin?x=1", "/..%2Fadmin%3Fx%3D1"),
    ],
)
def test_parameters_are_written_in_their_style(place: str, more: dict[str, Any], value: Any, sent: str) -> None:
    given = {key: each for key, each in {**parameter("p", place, schema={}), **more}.items() if each is not None}
    made = one("get", "/{p}" if place == "path" else "/q", parameters=[given])
    url = request(made, p=value).url.removeprefix(BASE).removeprefix("/q")
    assert (unquote(url) if "content" in more else url) == sent


@pytest.mark.parametrize("value", ["", ".", "..", []])
def test_a_path_leads_nowhere_else(value: Any) -> None:
    made = one("get", "/orders/{p}/x", parameters=[parameter("p", "path", schema={})])
    with pytest.raises(Unwritable, match=r"p: .* cannot stand in a path"):
        written(made, BASE, {"p": value})


@pytest.mark.parametrize("path", ["@evil.example/x", ".evil.example/x", ":81/x", "x", ""])
def test_a_path_names_no_other_host(path: str) -> None:
    """It follows the server's address, and the operator's headers go with it."""
    found = read(document({path: {"get": {"operationId": "op", **OK}}}))["op"]
    assert isinstance(found, Unusable)
    assert found.reason == f"GET {path} has a path that does not begin with /"


@pytest.mark.parametrize("path", ["@evil.example/x", ".evil.example/x", ":81/x", "/größe"])
def test_a_request_goes_to_its_server_alone(path: str) -> None:
    service = Service(Client([]), "https://shop.example", {}, Environment())
    spec = ruled_spec("shop.op", "read", ToolRules())
    tool = HttpTool(spec, replace(one(), path=path), service, None, 0)
    assert "they make an address" in str(tool.problem({}))
    assert HttpTool(spec, one(), service, None, 0).problem({}) is None


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\x00", "ü", " a"])
def test_a_header_is_one_line_of_visible_characters(value: str) -> None:
    made = one(parameters=[parameter("X-A", "header")])
    with pytest.raises(Unwritable, match=r"X-A: .* cannot stand in a header"):
        written(made, BASE, {"X-A": value})


def test_an_address_is_bounded() -> None:
    with pytest.raises(Unwritable, match="characters"):
        written(one(parameters=[parameter("p")]), BASE, {"p": "x" * http_limits.ADDRESS_CHARS_MAX})


def test_cookies_and_headers_are_written() -> None:
    made = one(parameters=[parameter("a", "cookie"), parameter("b", "cookie"), parameter("X-L", "header", schema={})])
    sent = request(made, a="1;2", b="3", **{"X-L": [1, "x"]})
    assert sent.headers == {"Cookie": "a=1%3B2; b=3", "X-L": "1,x"}


def test_forms_are_written() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "l": {"type": "array"}, "o": {"type": "object"}},
    }
    form = one("post", requestBody={"content": {"application/x-www-form-urlencoded": {"schema": schema}}})
    sent = request(form, a="x&y", l=[1, 2], o={"k": 1})
    assert (sent.headers["Content-Type"], sent.body) == (
        "application/x-www-form-urlencoded",
        b"a=x%26y&l=1&l=2&o=%7B%22k%22%3A+1%7D",
    )
    parts = one("post", requestBody={"content": {"multipart/form-data": {"schema": schema}}})
    sent = request(parts, a="x\r\ny")
    boundary = sent.headers["Content-Type"].partition("boundary=")[2]
    assert sent.body.decode() == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\ny\r\n--{boundary}--\r\n'
    )


def test_a_text_is_sent_as_it_is() -> None:
    made = one("post", requestBody={"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}})
    sent = request(made, body="hé")
    assert (sent.headers["Content-Type"], sent.body) == ("text/plain; charset=utf-8", "hé".encode())


def test_a_query_of_the_server_stays() -> None:
    made = one(parameters=[parameter("p")])
    assert written(made, f"{BASE}/?key=1", {"p": "a"}).url == f"{BASE}/x?key=1&p=a"
