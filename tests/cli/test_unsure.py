"""An answer of which no word came back: the person at the prompt is told what the log says became of it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping

import pytest
from pydantic import JsonValue

from perdure import Task
from perdure.cli.following import TerminalAnswering, follow
from perdure.cli.output import JsonOutput, Outcome
from perdure.core.errors import Unavailable
from perdure.testing import call, say
from tests.temporal.bench import Bench, results_of
from tests.temporal.test_approvals import BIG, refunding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


class Unheard(Task):
    """Nothing is heard of the first answer. `meanwhile` happens after it, and before the next one."""

    meanwhile: Callable[[str, str], Awaitable[None]]
    _happening: "asyncio.Task[None] | None" = None

    async def answer(self, help_id: str, answer: str | Mapping[str, JsonValue], *, by: str = "") -> None:
        if self._happening is None:
            self._happening = asyncio.ensure_future(self.meanwhile(help_id, str(answer)))
            raise Unavailable("no worker answered")
        await asyncio.shield(self._happening)
        await super().answer(help_id, answer, by=by)


Meanwhile = Callable[[Task, str, str], Awaitable[None]]


async def followed(bench: Bench, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> Outcome:
    """Approve at the prompt while that happens, and return how the task ended."""
    agent = bench.agent(call("refund", BIG), say("done"), tools=[refunding(bench.outside)])
    ours, person = os.pipe()
    os.write(person, b"y\n")
    with os.fdopen(ours) as file:
        monkeypatch.setattr(sys, "stdin", file)
        async with bench.app(agent) as app:
            plain = await app.send("go")
            task = Unheard(plain.id, app.store, app.client)
            task.meanwhile = lambda help_id, answer: meanwhile(plain, help_id, answer)
            outcome = await follow(task, JsonOutput(), TerminalAnswering(task, "me"))
            stored = await bench.sound(plain, app.store)
    os.close(person)
    assert len(results_of(stored)) == 1
    return outcome


async def test_an_answer_whose_acknowledgement_was_lost_was_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await followed(bench, monkeypatch, lambda plain, help_id, given: plain.answer(help_id, given, by="me"))
    assert done.answer == "done"
    assert "/1/0 was taken\n" in capsys.readouterr().err
    assert bench.outside.count("refund A-1 150") == 1


async def test_a_late_answer_is_not_told_as_taken_where_somebody_else_had_declined(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await followed(bench, monkeypatch, lambda plain, help_id, given: plain.decline(help_id, "fraud", by="bob"))
    assert done.answer == "done"
    said = capsys.readouterr().err
    assert "/1/0 was not taken: bob had answered" in said
    assert "fraud" in said
    assert bench.outside.all() == []


async def test_an_answer_that_never_arrived_is_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await followed(bench, monkeypatch, lambda *_: asyncio.sleep(0))
    assert done.answer == "done"
    said = capsys.readouterr().err
    assert "no worker answered; the answer is sent again" in said
    assert "was not taken" not in said
    assert bench.outside.count("refund A-1 150") == 1
