"""A model that follows a script, as a pure function of the transcript.

The next step is the one whose number is the count of the model's replies so far. Nothing else is looked at, and
nothing is kept: the same transcript is answered the same by every process, after every crash, as often as it is asked.
Matching steps to messages instead was refused: a script for one message is a function of `last_user` away, and a
position is what the log can be checked against.
"""

import asyncio
import json
from collections.abc import Callable, Sequence

from pydantic import JsonValue

from perdure.core.content import Entry, ModelEntry, ModelReply, ToolCall, Usage, UserEntry
from perdure.core.digests import safe_json, safe_text
from perdure.core.errors import ModelError
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest
from perdure.testing.script import PlannedCall, Step

Planned = Step | ModelError | Callable[[tuple[Entry, ...]], Step | ModelError]
"""A step, an error that is always raised, or a function of the transcript that gives one of them."""

CHARS_PER_ENTRY = 80
"""What an entry of the transcript counts beside its text."""

CHARS_PER_TOKEN = 4
"""How usage is counted: near enough to real tokenizers for a budget to be tested with."""


class ScriptedModel:
    """A `ModelPort` that answers by a script; see `scripted`."""

    def __init__(
        self, steps: Sequence[Planned], *, name: str = "scripted", loop: bool = False, usd_per_token: float = 0.0
    ) -> None:
        self._steps = tuple(steps)
        self._name = name
        self._loop = loop
        self._usd_per_token = usd_per_token

    @property
    def name(self) -> str:
        """The name that is recorded with every reply."""
        return self._name

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        """Answer by the script.

        Raises:
            ModelError: the script says so for this attempt, or has no step left (not retryable).
        """
        del blobs  # a script has seen the files already
        position = sum(isinstance(entry, ModelEntry) for entry in request.transcript)
        step = self._step(position, request.transcript)
        if isinstance(step, ModelError):
            raise _fresh(step)
        await _deliver(step, on_delta if request.attempt > step.failures else None)
        if step.failure is not None and request.attempt <= step.failures:
            raise _fresh(step.failure)
        return self._made(step, position, request)

    def _step(self, position: int, transcript: tuple[Entry, ...]) -> Step | ModelError:
        if not self._steps or (position >= len(self._steps) and not self._loop):
            return ModelError(
                f"{self._name}: the script has {len(self._steps)} steps, and step {position + 1} was asked for",
                retryable=False,
            )
        planned = self._steps[position % len(self._steps)]
        return planned if isinstance(planned, Step | ModelError) else planned(transcript)

    def _made(self, step: Step, position: int, request: ModelRequest) -> ModelReply:
        calls = tuple(_call(planned, position, index) for index, planned in enumerate(step.planned))
        written = len(step.text) + sum(len(str(planned.arguments)) for planned in step.planned)
        tokens = (_tokens(_read(request)), _tokens(written))
        return ModelReply(
            text=safe_text(step.text),
            calls=calls,
            finish=step.finish,
            usage=Usage(
                input_tokens=tokens[0], output_tokens=tokens[1], cost_usd=round(sum(tokens) * self._usd_per_token, 9)
            ),
            model=self._name,
        )


def scripted(*steps: Planned, name: str = "scripted", loop: bool = False, usd_per_token: float = 0.0) -> ScriptedModel:
    """Return a model that gives these answers, one a turn.

    Args:
        steps: what it answers with: `say(…)`, `call(…)`, `calls(…)`, `fail(…)`, or a function that makes one of
            them from the transcript (it must be pure: it is asked again after a crash).
        name: recorded with every reply.
        loop: begin again after the last step, instead of failing.
        usd_per_token: a price, so that a cost budget can be tested. Usage is counted in characters.

    A turn past the last step raises a `ModelError` that is not retryable and says so.
    """
    return ScriptedModel(steps, name=name, loop=loop, usd_per_token=usd_per_token)


def _fresh(error: ModelError) -> ModelError:
    """Return a new error that says the same: a raised one keeps its traceback, and the script's is used again."""
    return ModelError(
        str(error), retryable=error.retryable, retry_after_s=error.retry_after_s, elsewhere=error.elsewhere
    )


async def _deliver(step: Step, on_delta: DeltaSink | None) -> None:
    """Let the step's time pass and, where it streams, pass its words on. Failing attempts stream nothing."""
    words = step.text.split(" ") if step.stream and step.text and on_delta is not None else []
    pieces = [word if index == 0 else f" {word}" for index, word in enumerate(words)]
    pause_s = step.delay_s / max(1, len(pieces))
    if not pieces:
        await _pass(pause_s)
    for piece in pieces:
        await _pass(pause_s)
        if on_delta is not None:
            on_delta(safe_text(piece))


async def _pass(pause_s: float) -> None:
    # Zero seconds is a point where a cancellation can arrive, as with a real model.
    await asyncio.sleep(pause_s)


def _call(planned: PlannedCall, position: int, index: int) -> ToolCall:
    call_id = f"call_{position + 1}_{index + 1}"
    tool = safe_text(planned.tool)
    if not isinstance(planned.arguments, str):
        arguments = {key: safe_json(value) for key, value in planned.arguments.items()}
        return ToolCall(call_id=call_id, tool=tool, arguments=arguments)
    try:
        parsed: JsonValue = json.loads(planned.arguments)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return ToolCall(call_id=call_id, tool=tool, arguments={key: safe_json(value) for key, value in parsed.items()})
    return ToolCall(call_id=call_id, tool=tool, arguments=None, malformed=safe_text(planned.arguments))


def _read(request: ModelRequest) -> int:
    """Count what a model would read, in characters: the newest entries' texts, a flat figure for all before.

    Encoding or even visiting every text on every turn would make a script's cost grow with the square of its length.
    """
    newest = 0
    for entry in reversed(request.transcript):
        if isinstance(entry, ModelEntry):
            break
        newest += len(entry.message.text if isinstance(entry, UserEntry) else entry.result.text)
    return len(request.instructions) + newest + CHARS_PER_ENTRY * len(request.transcript)


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)
