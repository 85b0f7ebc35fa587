"""The steps of a script: one step is one answer of the model."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from perdure.core.content import Finish
from perdure.core.errors import ModelError


@dataclass(frozen=True)
class PlannedCall:
    """A tool call in a script. `arguments` as text is what the model wrote, valid or not."""

    tool: str
    arguments: Mapping[str, JsonValue] | str


@dataclass(frozen=True)
class Step:
    """One answer: text, calls, or both; made by `say`, `call`, `calls` and `fail`.

    `stream` passes the text on word by word. `delay_s` passes before the answer, and between two words of a streamed
    one it is shared out evenly; a cancellation ends it at once. The first `failures` attempts at the answer raise
    `failure` instead: attempts are counted by the request, so a worker that takes over counts on.
    """

    text: str = ""
    planned: tuple[PlannedCall, ...] = ()
    finish: Finish = "stop"
    stream: bool = False
    delay_s: float = 0.0
    failure: ModelError | None = None
    failures: int = 0

    def __post_init__(self) -> None:
        if self.delay_s < 0:
            raise ValueError(f"delay_s: {self.delay_s} is negative; give seconds, 0 for none")
        if self.failures and self.failure is None:
            raise ValueError("failure: give the ModelError that the first attempts raise")


def say(
    text: str,
    *,
    finish: Finish = "stop",
    stream: bool = False,
    delay_s: float = 0.0,
    failure: ModelError | None = None,
    failures: int = 1,
) -> Step:
    """Answer with text. See `Step` for the options; `failures` counts only with a `failure`."""
    return Step(
        text=text,
        finish=finish,
        stream=stream,
        delay_s=delay_s,
        failure=failure,
        failures=failures if failure else 0,
    )


def call(
    tool: str,
    arguments: Mapping[str, JsonValue] | str | None = None,
    *,
    text: str = "",
    stream: bool = False,
    delay_s: float = 0.0,
    failure: ModelError | None = None,
    failures: int = 1,
) -> Step:
    """Ask for one tool call. `arguments` as text is sent as the model's own writing, so that it may be malformed."""
    return Step(
        text=text,
        planned=(PlannedCall(tool, {} if arguments is None else arguments),),
        stream=stream,
        delay_s=delay_s,
        failure=failure,
        failures=failures if failure else 0,
    )


def calls(
    *steps: Step,
    text: str = "",
    stream: bool = False,
    delay_s: float = 0.0,
    failure: ModelError | None = None,
    failures: int = 1,
) -> Step:
    """Ask for several calls in one answer: `calls(call("a"), call("b"))`. Options of the inner calls are ignored."""
    return Step(
        text=text,
        planned=tuple(planned for step in steps for planned in step.planned),
        stream=stream,
        delay_s=delay_s,
        failure=failure,
        failures=failures if failure else 0,
    )


def fail(
    message: str, *, retryable: bool = False, retry_after_s: float | None = None, elsewhere: bool = True
) -> ModelError:
    """Return an error for a script: as a step it is raised at every attempt, as `failure=` at the first ones.

    One that is not retryable gives the turn to the agent's next fallback, unless `elsewhere` is False.
    """
    return ModelError(message, retryable=retryable, retry_after_s=retry_after_s, elsewhere=elsewhere)
