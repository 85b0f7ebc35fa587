"""The tools that every agent has. They are answered by the workflow; no activity runs for them."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from perdure.core import asking_limits, limits
from perdure.core.agent import ASK_PARTICIPANT
from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput
from perdure.core.forms import checked_form
from perdure.core.ports import ToolSchema
from perdure.core.questions import Manner

RESERVED: Final = frozenset({ASK_PARTICIPANT})
"""Names that no other tool may take."""

ASK_PARTICIPANT_SCHEMA: Final = ToolSchema(
    name=ASK_PARTICIPANT,
    description=(
        "Ask the person you work for a question and wait for the answer, which may take long. Use it for what only "
        "they can know or decide. Give choices where few answers are possible, or form where you need several values."
    ),
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "description": "The question, in full."},
            "choices": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 2,
                "description": "The only possible answers, if there are few.",
            },
            "form": {
                "type": "object",
                "description": (
                    "A JSON schema of an object that the answer must satisfy, one property for each value: types, "
                    "enum, required, minimum, maximum, minLength, maxLength, items."
                ),
            },
            "expires_in_s": {
                "type": "number",
                "description": "After so many seconds without an answer you are told that there is none.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)


def question_of(arguments: dict[str, JsonValue]) -> str:
    """Return the question that an `ask_participant` call puts, without surrounding white space.

    Raises `InvalidInput`, whose text is fit for the model, when it is missing, empty, or over `PROBLEM_BYTES_MAX` bytes
    of UTF-8, or when there is a parameter that is none.
    """
    field = f"{ASK_PARTICIPANT}.question"
    known = ("question", "choices", "form", "expires_in_s")
    others = sorted(set(arguments) - set(known))
    if others:
        raise InvalidInput(f"{ASK_PARTICIPANT}.{others[0]}", f"unknown; its parameters are {', '.join(known)}")
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


def manner_of(arguments: Mapping[str, JsonValue], expires_in_s: float | None) -> Manner | None:
    """Return how an `ask_participant` call asks; None where any words answer it, for as long as it takes.

    `expires_in_s` is the agent's, for a call that says nothing of it. Raises `InvalidInput`, fit for the model.
    """
    choices = _choices(arguments.get("choices"))
    form = arguments.get("form")
    if form is not None and choices:
        raise InvalidInput(f"{ASK_PARTICIPANT}.form", "there are choices too; give one of the two")
    if form is not None and not isinstance(form, dict):
        raise InvalidInput(f"{ASK_PARTICIPANT}.form", "must be a JSON schema of an object")
    manner = Manner(
        choices=choices,
        form=None if form is None else checked_form(form, f"{ASK_PARTICIPANT}.form"),
        expires_in_s=_expiry(arguments.get("expires_in_s"), expires_in_s),
    )
    return None if manner == Manner() else manner


def _choices(given: JsonValue) -> tuple[str, ...]:
    field = f"{ASK_PARTICIPANT}.choices"
    if given is None or given == []:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, str) and each.strip() for each in given):
        raise InvalidInput(field, "must be a list of texts, none of them empty")
    choices = [safe_text(" ".join(str(each).split())) for each in given]
    if len(choices) > asking_limits.CHOICES_MAX or any(len(each) > asking_limits.CHOICE_CHARS_MAX for each in choices):
        most, length = asking_limits.CHOICES_MAX, asking_limits.CHOICE_CHARS_MAX
        raise InvalidInput(field, f"may be {most} texts of {length} characters each at most")
    if len({each.casefold() for each in choices}) < len(choices):
        raise InvalidInput(field, "two of them are the same; leave one out")
    return tuple(choices)


def _expiry(given: JsonValue, default: float | None) -> float | None:
    if given is None:
        return default
    least, most = asking_limits.EXPIRES_S_MIN, asking_limits.EXPIRES_S_MAX
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise InvalidInput(f"{ASK_PARTICIPANT}.expires_in_s", f"must be {least:g} to {most:g} seconds, or left out")
    return float(given)
