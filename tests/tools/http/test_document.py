"""Documents in JSON and YAML: read as JSON, checked, and refused with the place."""

import json
from typing import Any

import pytest

from perdure.core import http_limits
from perdure.core.errors import ConfigurationError
from perdure.tools.http.document import checked, read_text
from tests.tools.http.running import OK, SHOP, body, document

FIELD = "http.shop, document"

YAML = """
openapi: 3.0.3
info: {title: shop, version: 2026-01-02}
paths:
  /x:
    get:
      operationId: x
      parameters:
        - {name: country, in: query, schema: {type: string, enum: [no, se, on]}}
      responses:
        200: {description: 'true'}
"""


def test_json_and_yaml_are_read_alike() -> None:
    assert read_text(FIELD, json.dumps(SHOP)) == SHOP
    found: Any = read_text(FIELD, YAML)
    assert found["info"]["version"] == "2026-01-02"
    assert found["paths"]["/x"]["get"]["parameters"][0]["schema"]["enum"] == ["no", "se", "on"]
    assert list(found["paths"]["/x"]["get"]["responses"]) == ["200"]
    assert checked(FIELD, found).is_3_0


def test_an_anchor_is_read_and_a_flood_of_them_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "DOCUMENT_VALUES_MAX", 10_000)
    assert read_text(FIELD, "a: &a [1]\nb: *a") == {"a": [1], "b": [1]}
    flood = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    with pytest.raises(ConfigurationError, match="too many values"):
        read_text(FIELD, flood)
    with pytest.raises(ConfigurationError, match="too many"):
        read_text(FIELD, "a: &a [*a]")


@pytest.mark.parametrize("text", ["{", "a: [", "a: !!python/object/apply:os.system ['true']", "a: !x 1"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"http\.shop, document: is neither JSON nor YAML"):
        read_text(FIELD, text)


def test_a_text_over_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "DOCUMENT_BYTES_MAX", 100)
    with pytest.raises(ConfigurationError, match="is over 100 bytes"):
        read_text(FIELD, " " * 101)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "is no object"),
        ({"swagger": "2.0"}, "is Swagger 2.0; convert it"),
        ({}, "openapi is missing"),
        ({**SHOP, "openapi": "4.0.0"}, "openapi is 4.0.0"),
        ({"openapi": "3.1.0", "paths": {}}, "info: Field required"),
        (document({"/x": {"get": {"parameters": [{"name": "a"}]}}}), r"paths./x.get.parameters.0"),
        ({**SHOP, "info": {"title": {1, 2}, "version": "1"}}, "which JSON does not have"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(given: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"http.shop, document: .*{told}"):
        checked(FIELD, given)


@pytest.mark.parametrize("version", ["3.0.0", "3.0.4", "3.1.0", "3.1.9"])
def test_every_version_of_3_0_and_3_1_is_read(version: str) -> None:
    assert checked(FIELD, {**SHOP, "openapi": version}).is_3_0 == version.startswith("3.0")


def test_schemas_that_are_json_schemas_do_not_fail_a_document() -> None:
    odd = {"type": "array", "prefixItems": [True], "items": False, "contains": True}
    given = document(
        {"/x": {"post": {"requestBody": body(schema=odd), **OK}}},
        components={"schemas": {"schema": odd, "Any": True}, "parameters": {"schema": {"name": "a", "in": "query"}}},
    )
    assert checked(FIELD, given).raw == given
