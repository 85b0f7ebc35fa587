"""`${NAME}` in settings: filled in from the environment, named where it is missing, masked where it comes back."""

import json

import pytest
from pydantic import JsonValue

from perdure.core.errors import ConfigurationError
from perdure.tools.environment import Environment, filled

GIVEN = {"TOKEN": "s3cr3t/value", "SHORT": "eu", "EMPTY": "", "LONGER": "s3cr3t/value-and-more"}


def test_references_are_filled_in_where_they_stand() -> None:
    assert filled("headers.Authorization", "Bearer ${TOKEN}", GIVEN) == "Bearer s3cr3t/value"
    assert filled("url", "https://${SHORT}.shop/${SHORT}", GIVEN) == "https://eu.shop/eu"
    assert filled("url", "costs $5, $NAME, $${TOKEN}", GIVEN) == "costs $5, $NAME, ${TOKEN}"


@pytest.mark.parametrize("name", ["MISSING", "EMPTY"])
def test_a_missing_variable_is_named_with_its_place(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"mcp\.orders\.env\.KEY: the environment variable {name} is not set"):
        filled("mcp.orders.env.KEY", f"a ${{{name}}}", GIVEN)


@pytest.mark.parametrize("text", ["${", "${}", "${TOKEN", "${A B}", "${1}"])
def test_a_malformed_reference_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"url: .* names no environment variable"):
        filled("url", text, GIVEN)


def test_what_was_filled_in_is_masked_wherever_it_stands() -> None:
    environment = Environment(GIVEN)
    environment.filled("headers.A", "${TOKEN} ${LONGER} ${SHORT}")
    told = environment.masked("no s3cr3t/value, no s3cr3t/value-and-more, no s3cr3t%2Fvalue; eu stays")
    assert told == "no ${TOKEN}, no ${LONGER}, no ${TOKEN}; eu stays"
    told_json = environment.masked_json({"s3cr3t/value": ["s3cr3t/value", 1, None, {"a": "s3cr3t/value"}]})
    assert told_json == {"${TOKEN}": ["${TOKEN}", 1, None, {"a": "${TOKEN}"}]}


@pytest.mark.parametrize("value", ["ab/cd+ef==", 'ab"cd\\ef', "größe/1"])
def test_what_was_filled_in_is_masked_as_json_writes_it(value: str) -> None:
    environment = Environment({"KEY": value})
    environment.filled("headers.A", "${KEY}")
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert environment.masked(f'{{"bad": {text}}}') == '{"bad": "${KEY}"}'
        assert environment.masked(text.replace("/", "\\/")) == '"${KEY}"'


def test_what_is_masked_may_be_deep_and_stays_as_it_was() -> None:
    """It is what a service answered after its effect: nothing may fail for it."""
    environment = Environment(GIVEN)
    environment.filled("headers.A", "${TOKEN}")
    given: JsonValue = ["s3cr3t/value"]
    for _ in range(20_000):
        given = [given]
    told = environment.masked_json(given)
    for _ in range(20_000):
        assert isinstance(told, list)
        assert isinstance(given, list)
        (told,), (given,) = told, given
    assert (told, given) == (["${TOKEN}"], ["s3cr3t/value"])


def test_what_is_no_secret_is_not_masked() -> None:
    environment = Environment(GIVEN)
    assert environment.filled("url", "${TOKEN}", secret=False) == environment.masked("s3cr3t/value")
