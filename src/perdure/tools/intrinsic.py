"""The tools that every agent has. They are answered by the workflow; no activity runs for them."""

from typing import Final

from pydantic import JsonValue

from perdure.core import limits
from perdure.core.agent import ASK_PARTICIPANT
from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput
from perdure.core.ports import ToolSchema

RESERVED: Final = frozenset({ASK_PARTICIPANT})
"""Names that no other tool may take."""

ASK_PARTICIPANT_SCHEMA: Final = ToolSchema(
    name=ASK_PARTICIPANT,
    description=(
        "Ask the person you work for a question and wait for the answer, which may take long. Use it for what only "
        "they can know or decide."
    ),
    parameters={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "description": "The question, in full."}},
        "required": ["question"],
        "additionalProperties": False,
    },
)


def question_of(arguments: dict[str, JsonValue]) -> str:
    """Return the question that an `ask_participant` call puts, without surrounding white space.

    Raises `InvalidInput`, whose text is fit for the model, when it is missing, empty, over `PROBLEM_BYTES_MAX` bytes
    of UTF-8, or not alone.
    """
    field = f"{ASK_PARTICIPANT}.question"
    others = sorted(set(arguments) - {"question"})
    if others:
        raise InvalidInput(f"{ASK_PARTICIPANT}.{others[0]}", "unknown; its only parameter is question")
    question = arguments.get("question")
    if not isinstance(question, str):
        raise InvalidInput(field, "missing or not a text; give the question as a text")
    question = safe_text(question).strip()
    if not question:
        raise InvalidInput(field, "empty; give the question as a text")
    size = len(question.encode())
    if size > limits.PROBLEM_BYTES_MAX:
        raise InvalidInput(field, f"it has {size} bytes; ask in at most {limits.PROBLEM_BYTES_MAX} bytes")
    return question
