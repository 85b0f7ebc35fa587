"""`ask_participant`: its schema and the question it puts."""

import jsonschema
import pytest
from pydantic import JsonValue

from perdure.core import limits
from perdure.core.errors import InvalidInput
from perdure.tools import ASK_PARTICIPANT_SCHEMA, question_of


def test_the_schema_is_one_text() -> None:
    assert ASK_PARTICIPANT_SCHEMA.name == "ask_participant"
    jsonschema.Draft202012Validator.check_schema(ASK_PARTICIPANT_SCHEMA.parameters)
    jsonschema.validate({"question": "Refund or replacement?"}, ASK_PARTICIPANT_SCHEMA.parameters)


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ({"question": "Refund or replacement?"}, "Refund or replacement?"),
        ({"question": "  Where to?\n"}, "Where to?"),
        ({"question": "a\x00b\ud800"}, "a\ufffdb\ufffd"),
        ({"question": "x" * limits.PROBLEM_BYTES_MAX}, "x" * limits.PROBLEM_BYTES_MAX),
    ],
)
def test_the_question(arguments: dict[str, JsonValue], question: str) -> None:
    assert question_of(arguments) == question


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "ask_participant.question: missing"),
        ({"question": 5}, "ask_participant.question: missing or not a text"),
        ({"question": " \n"}, "ask_participant.question: empty"),
        ({"question": "x", "urgent": True}, "ask_participant.urgent: unknown"),
        ({"question": "ä" * limits.PROBLEM_BYTES_MAX}, "ask_participant.question: it has 4096 bytes"),
    ],
)
def test_what_is_no_question_is_refused_with_the_fix(arguments: dict[str, JsonValue], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        question_of(arguments)
    assert told in str(caught.value)
