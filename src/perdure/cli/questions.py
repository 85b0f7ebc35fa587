"""What a person types as an answer, and what the task is given for it; pure.

The words are read by what is asked: a call that waits takes yes, no and other arguments, a list of choices takes a
number, a form takes `name=value`. What is not understood goes to the task as it stands, which says what it takes.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from perdure.core.digests import canonical
from perdure.core.errors import InvalidInput

YES = frozenset({"y", "yes", "approve"})
NO = frozenset({"n", "no", "decline"})
EDIT = frozenset({"e", "edit"})


@dataclass(frozen=True)
class Question:
    """An open help request. An approval's `digest` names the call that waits; `untold`: its server says no kinds."""

    help_id: str
    text: str
    choices: tuple[str, ...] = ()
    form: Mapping[str, JsonValue] | None = None
    digest: str = ""
    untold: bool = False

    @classmethod
    def of(cls, data: Mapping[str, JsonValue], text: str = "") -> "Question":
        """Return the question of an event's data; `text` where that does not have it."""
        choices, form = data.get("choices"), data.get("schema")
        return cls(
            help_id=str(data.get("help_id", "")),
            text=str(data.get("text", "")) or text,
            choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
            form=form if isinstance(form, dict) else None,
            digest=str(data.get("call_digest", "")) if data.get("help_kind") == "approval" else "",
        )

    @property
    def how(self) -> str:
        """How it is answered on a terminal."""
        if self.digest:
            return '[y]es, [n]o and why, or [e]dit and all arguments as JSON: e {"amount": 50}'
        if self.form is not None:
            return f"{shown_fields(self.form)}, or a JSON object"
        if self.choices:
            return ", ".join(f"[{place}] {choice}" for place, choice in enumerate(self.choices, 1))
        return ""


def answer_to(question: Question, line: str) -> str:
    """Return what the task is given for a line; raises `InvalidInput` for an edit that is none."""
    if question.digest:
        return _decision(question, line)
    if question.form is not None and not line.lstrip().startswith("{") and "=" in line:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise InvalidInput(
                "answer", f"{error}; write name=value, with quotes around a value of several words"
            ) from error
        return fields_of(question.form, words)
    if question.choices and line.strip().isdecimal() and line.strip() not in question.choices:
        place = int(line)
        return question.choices[place - 1] if 0 < place <= len(question.choices) else line
    return line


def _decision(question: Question, line: str) -> str:
    word, _, rest = line.strip().partition(" ")
    said, rest = word.rstrip(":,.!").lower(), rest.strip().lstrip(":").strip()
    if said in YES:
        return approval(question.digest, rest)
    if said in NO:
        return canonical({"approve": False, "reason": rest}).decode()
    if said in EDIT:
        return approval(question.digest, arguments=edited(rest, "edit"))
    return line


def approval(digest: str, reason: str = "", arguments: dict[str, JsonValue] | None = None) -> str:
    """Return the approval of the call that was shown."""
    given: dict[str, JsonValue] = {"approve": True, "digest": digest} if digest else {"approve": True}
    given |= {"reason": reason} if reason else {}
    return canonical(given | ({"arguments": arguments} if arguments is not None else {})).decode()


def edited(text: str, field: str) -> dict[str, JsonValue]:
    """Return arguments that a person wrote; raises `InvalidInput` for what is no JSON object."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(field, 'give all arguments of the call as a JSON object: {"amount": 50}') from error
    if not isinstance(given, dict):
        raise InvalidInput(field, 'give all arguments of the call as a JSON object: {"amount": 50}')
    return given


def fields_of(form: Mapping[str, JsonValue], words: Sequence[str]) -> str:
    """Return `name=value` words as the object that a form takes; a value has the type of its field."""
    properties: Any = form.get("properties") or {}
    given: dict[str, JsonValue] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidInput("answer", f"{word!r} is no name=value; the fields: {shown_fields(form)}")
        given[name] = _value(properties.get(name, {}), value)
    return canonical(given).decode()


def _value(field: Mapping[str, Any], text: str) -> JsonValue:
    if field.get("type") == "string" or text in field.get("enum", ()):
        return text
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def shown_fields(form: Mapping[str, JsonValue]) -> str:
    """Return how a form's fields are typed: `size=S|M|L count=… [gift=…]`."""
    properties: Any = form.get("properties") or {}
    required: Any = form.get("required") or ()
    shown = []
    for name, field in properties.items():
        among = field.get("enum") or (("true", "false") if field.get("type") == "boolean" else ())
        each = f"{name}={'|'.join(str(value) for value in among) or '…'}"
        shown.append(each if name in required else f"[{each}]")
    return " ".join(shown)
