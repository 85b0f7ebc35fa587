"""Questions: how one is put to a person, and which answers it takes.

A question takes any words, one of several choices, or a form (`forms.py`). What it does not take is refused and changes
nothing: the question stays open, and who answered is told what is wrong.
"""

from typing import Literal

from pydantic import Field, JsonValue

from perdure.core.approvals import Ruling
from perdure.core.content import Frozen
from perdure.core.digests import canonical, cut_text, safe_text
from perdure.core.errors import InvalidInput
from perdure.core.forms import read_answer

HelpKind = Literal["question", "approval"]
"""What a person is asked for: an answer, or their word on a call that waits for it."""


class Manner(Frozen):
    """How a question is put: with `choices`, or with the JSON schema of a `form`; else any words answer it.

    After `expires_in_s` seconds without an answer there will be none.
    """

    choices: tuple[str, ...] = Field(default=(), exclude_if=lambda given: given == ())
    form: dict[str, JsonValue] | None = Field(default=None, exclude_if=lambda given: given is None)
    expires_in_s: float | None = Field(default=None, exclude_if=lambda given: given is None)


class Examined(Frozen):
    """What a worker finds when it looks at a call of a reply.

    `problem` is why it must not run, `question` what it asks a person and `manner` how. `ruling` is what the rules came
    to for a call that may not simply begin. `unknown`: it is of a tool that this worker does not have, and nobody held
    it to any rules.
    """

    problem: str | None = None
    question: str | None = None
    manner: Manner | None = None
    ruling: Ruling | None = None
    unknown: bool = False


def read(text: str, choices: tuple[str, ...], form: dict[str, JsonValue] | None) -> str:
    """Return an answer as it is recorded; raises `InvalidInput` for one that the question does not take."""
    if form is not None:
        return canonical(dict(read_answer(form, text))).decode()
    if not choices:
        return text
    plain = _plain(text)
    for choice in choices:
        if _plain(choice) == plain:
            return choice
    told = ", ".join(f'"{choice}"' for choice in choices)
    raise InvalidInput("text", f"{cut_text(safe_text(text.strip()), 100, '…')!r} is none of the answers: {told}")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
