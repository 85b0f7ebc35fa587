"""A tool that is somewhere else, and one that asks a person: what the ledger is told, and when."""

from typing import Any

import pytest
from pydantic import JsonValue

from perdure.core.agent import EffectClass, ToolSpec
from perdure.core.artifacts import Artifact, Asks, File, Returned, WithFiles
from perdure.core.effects import Answer
from perdure.core.errors import BegunError, StoreBehind, Unavailable
from perdure.core.ports import Call, Check, Execution, ToolSchema
from perdure.tools import notes
from tests.tools.bench import BATCH, Bench


class Remote:
    """A tool at the end of a line, as a test wants it."""

    settle_s = 0.0

    def __init__(self, effect: EffectClass = "once", digest: str | None = "d1") -> None:
        self.spec = ToolSpec(name="shop.pay", effect=effect, schema_digest=digest)
        self.schema = ToolSchema(name="shop.pay", description="", parameters={"type": "object"})
        self.calls: list[tuple[str, JsonValue, str]] = []
        self.down = False
        self.refusal = ""
        self.returns: Returned = "paid"

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        return None

    async def ready(self, registered: str | None) -> str:
        if self.down:
            raise Unavailable("the line is down")
        return self.refusal

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> Returned:
        self.calls.append((call.idempotency_key, None, ""))
        notes.taken().say("1 of 2", about="progress")
        notes.taken().say("2 of 2", about="progress")
        return self.returns

    async def resume(self, arguments: dict[str, JsonValue], call: Call, kept: JsonValue, answer: str) -> Returned:
        self.calls.append((call.idempotency_key, kept, answer))
        return "paid" if answer == "yes" else Asks("Sure?", kept={"round": 2})

    async def check(self, call: Call) -> Check:
        return Check.unknown()


async def run(bench: Bench, tool: Any, attempt: int = 1, **fields: Any) -> Execution:
    request = bench.request("shop.pay", tool.spec.effect, attempt=attempt)
    request = request.model_copy(update={"schema_digest": "d1", **fields})
    return await bench.executor(tool).execute(BATCH, request, "call-1", {})


async def test_one_that_cannot_be_reached_begins_nothing(bench: Bench) -> None:
    tool = Remote()
    tool.down = True
    with pytest.raises(Unavailable, match="the line is down"):
        await run(bench, tool)
    assert await bench.row() is None
    tool.down = False
    assert (await run(bench, tool, attempt=2)).outcome == "result"


async def test_one_that_changed_begins_nothing_and_its_key_is_closed(bench: Bench) -> None:
    changed = await run(bench, Remote(digest="d2"))
    assert changed.outcome == "not_begun"
    assert "the schema of shop.pay changed since this task began; a new task takes the new one" in changed.reason
    assert await bench.outcome() == ("closed", [])


async def test_one_that_changed_still_finds_out_what_became_of_a_key(bench: Bench) -> None:
    tool = Remote()
    assert (await run(bench, tool)).outcome == "result"
    again = await run(bench, Remote(digest="d2"), attempt=2)
    assert (again.outcome, (await bench.result(again)).text) == ("result", "paid")
    assert len(tool.calls) == 1


async def test_its_own_word_refuses_too(bench: Bench) -> None:
    tool = Remote()
    tool.refusal = "the server lists another by now"
    refused = await run(bench, tool)
    assert (refused.outcome, refused.reason) == ("not_begun", "the server lists another by now")


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_a_question_is_kept_and_comes_again_until_it_is_answered(bench: Bench, effect: EffectClass) -> None:
    tool = Remote(effect)
    tool.returns = Asks("Really?", ("yes", "no"), {"state": "s"})
    asked = await run(bench, tool)
    assert (asked.outcome, asked.question, asked.choices) == ("asks", "Really?", ("yes", "no"))
    again = await run(bench, tool, attempt=2)
    assert again.model_copy(update={"notes": asked.notes}) == asked, "its report was lost: nothing is called again"
    assert len(tool.calls) == 1
    more = await run(bench, tool, attempt=3, answer=Answer(asked=asked.digest, text="hm"))
    assert (more.outcome, more.question) == ("asks", "Sure?")
    assert more.digest != asked.digest
    late = await run(bench, tool, attempt=4, answer=Answer(asked=asked.digest, text="yes"))
    assert late.digest == more.digest, "the answer to a question that no longer stands goes nowhere"
    done = await run(bench, tool, attempt=5, answer=Answer(asked=more.digest, text="yes"))
    assert (await bench.result(done)).text == "paid"
    assert [(kept, answer) for _, kept, answer in tool.calls] == [
        (None, ""),
        ({"state": "s"}, "hm"),
        ({"round": 2}, "yes"),
    ]
    assert len({key for key, _, _ in tool.calls}) == 1
    row = await bench.row()
    assert row is not None
    assert [attempt.asked for attempt in row.begun] == [True, True, False]
    assert [attempt.attempt for attempt in row.open_ended] == [5]


@pytest.mark.parametrize(("number", "length", "fits"), [(50, 200, True), (51, 1, False), (2, 201, False)])
async def test_choices_too_long_for_a_state_are_left_out(bench: Bench, number: int, length: int, *, fits: bool) -> None:
    tool = Remote()
    choices = tuple(f"{n:0{length}}"[-length:] for n in range(number))
    tool.returns = Asks("Which?", choices)
    asked = await run(bench, tool)
    assert (asked.outcome, asked.question, asked.choices) == ("asks", "Which?", choices if fits else ())
    assert (await run(bench, tool, attempt=2)).choices == asked.choices, "as it was kept, it comes again"
    done = await run(bench, tool, attempt=3, answer=Answer(asked=asked.digest, text="yes"))
    assert (await bench.result(done)).text == "paid", "the tool judges what was answered"


async def test_one_that_was_never_answered_is_said_not_to_have_gone_on(bench: Bench) -> None:
    tool = Remote()
    tool.returns = Asks("Really?")
    await run(bench, tool)
    found = await run(bench, tool, attempt=2, resolve_only=True)
    assert (found.outcome, found.reason) == (
        "not_begun",
        "it had asked a person, and did not go on before it was answered",
    )
    assert await bench.outcome() == ("closed", [1])


async def test_a_question_that_the_store_has_lost_begins_nothing(bench: Bench) -> None:
    tool = Remote()
    with pytest.raises(StoreBehind, match="P3: the store lacks the question"):
        await run(bench, tool, answer=Answer(asked="0" * 64, text="yes"))
    assert tool.calls == []


async def test_notes_come_with_the_end_and_later_ones_replace_those_about_the_same(bench: Bench) -> None:
    assert (await run(bench, Remote())).notes == ("2 of 2",)


async def test_files_are_kept_and_what_is_for_the_person_is_handed_over(bench: Bench) -> None:
    tool = Remote("read")
    tool.returns = WithFiles(
        "see",
        (File("image/png", "a.png", b"12345"), File("text/html", "b", url="https://b")),
        Artifact("pay", "for you"),
    )
    result = await bench.result(await run(bench, tool))
    assert result.text.splitlines()[:3] == [
        "see",
        "[file a.png, image/png, 5 bytes: kept]",
        "[file b, text/html: https://b]",
    ]
    kept, linked = result.files
    assert await bench.store.get_blob(str(kept.blob)) == b"12345"
    assert (linked.url, linked.blob) == ("https://b", None)
    assert result.handed_over is not None


async def test_what_a_tool_raises_in_the_middle_is_open_as_ever(bench: Bench) -> None:
    class Broken(Remote):
        async def resume(self, arguments: dict[str, JsonValue], call: Call, kept: JsonValue, answer: str) -> Returned:
            raise BegunError("the line broke")

    tool = Broken()
    tool.returns = Asks("Really?")
    asked = await run(bench, tool)
    with pytest.raises(BegunError, match="the line broke"):
        await run(bench, tool, attempt=2, answer=Answer(asked=asked.digest, text="yes"))
    assert (await run(bench, tool, attempt=3, answer=Answer(asked=asked.digest, text="yes"))).outcome == "in_doubt"
