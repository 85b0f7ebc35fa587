"""Replies while they are made: shown in chunks, taken back or begun anew, never garbled, and no events."""

from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, tool
from perdure.a2a.drafting import Drafting
from perdure.a2a.extension import URI
from perdure.a2a.translate import TaskView
from perdure.core.content import ModelReply
from perdure.core.deltas import Draft
from perdure.core.errors import ModelError
from perdure.core.log import LogEvent
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest, StoredEvent
from perdure.testing import call, say
from tests.a2a.desk import Json, desk, sending
from tests.a2a.house import House, said
from tests.temporal.bench import FAST, Bench

loop = pytest.mark.asyncio(loop_scope="session")

TEXT = "it was a dark and stormy night"


class Halting:
    """A model whose first attempt says something and fails, in whichever way."""

    name = "halting"

    def __init__(self, texts: tuple[str, str]) -> None:
        self.texts = texts

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        words = self.texts[request.attempt - 1]
        for word in words.split(" "):
            on_delta(f"{word} ")
        if request.attempt == 1:
            raise ModelError("the provider hung up", retryable=True)
        return ModelReply(text=words, model=self.name)


class Shown:
    """What a client keeps that does as A2A says: artifacts by their id, chunks appended or put in place."""

    def __init__(self) -> None:
        self.artifacts: dict[str, str] = {}
        self.numbers: list[int] = []
        self.drafts: list[Json] = []

    def take(self, response: Json) -> None:
        (content,) = response.values()
        told = content["metadata"].get(URI, {})
        if "artifactUpdate" in response:
            artifact = content["artifact"]
            before = self.artifacts.get(artifact["artifactId"], "") if content.get("append") else ""
            self.artifacts[artifact["artifactId"]] = before + "".join(part["text"] for part in artifact["parts"])
        if told.get("kind") == "draft":
            assert "generation" not in told
            self.drafts.append({**told, "append": content.get("append", False), "now": dict(self.artifacts)})
        elif "generation" in told:
            self.numbers.append(int(told["generation"]))


async def shown(bench: Bench, *steps: Any, **options: Any) -> Shown:
    found = Shown()
    model = options.pop("model", None)
    agent = bench.agent(*steps, **options) if model is None else Agent(bench.queue, model=model, model_retry=FAST)
    async with bench.app(agent) as app, desk(app) as client:
        for _, response in await client.stream("SendStreamingMessage", sending()):
            found.take(response)
        (listed,) = (await client.result("ListTasks", {}))["tasks"]
        task = await client.task(listed["id"])
        kept = {each["artifactId"]: each["parts"][0]["text"] for each in task.get("artifacts", [])}
        assert {name: text for name, text in found.artifacts.items() if text} == kept
    assert found.numbers == list(range(len(found.numbers)))
    return found


@loop
async def test_a_reply_comes_in_chunks_and_then_whole(bench: Bench) -> None:
    found = await shown(bench, say(TEXT, stream=True, delay_s=0.5))
    assert found.artifacts == {"turn-1": TEXT}
    assert len(found.drafts) > 1
    assert [each["append"] for each in found.drafts] == [False, *[True] * (len(found.drafts) - 1)]
    assert all((each["turn"], each["attempt"]) == (1, 1) for each in found.drafts)
    assert all(TEXT.startswith(each["now"]["turn-1"]) for each in found.drafts)


@loop
async def test_a_retried_attempt_begins_the_artifact_anew(bench: Bench) -> None:
    found = await shown(bench, model=Halting(("half an answ", TEXT)))
    assert found.artifacts == {"turn-1": TEXT}
    for each in found.drafts:
        assert ("half an answ ", f"{TEXT} ")[int(each["attempt"]) - 1].startswith(each["now"]["turn-1"])
    for attempt in {each["attempt"] for each in found.drafts}:
        first, *more = [each["append"] for each in found.drafts if each["attempt"] == attempt]
        assert not first
        assert all(more)


@loop
async def test_what_is_said_before_a_tool_is_no_artifact_in_the_end(bench: Bench) -> None:
    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "found"

    steps = (call("look", text="Let me see what there is.", stream=True, delay_s=0.4), say("done"))
    found = await shown(bench, *steps, tools=[look])
    assert found.artifacts == {"turn-1": "", "turn-2": "done"}
    assert found.drafts[-1]["now"]["turn-1"] == ""
    assert found.drafts[-2]["now"]["turn-1"].startswith("Let")


# --- what is shown of which draft -----------------------------------------------------------------------------------


def view_of(*events: LogEvent) -> tuple[TaskView, Drafting]:
    view = TaskView("t", "c", 0)
    drafting = Drafting(view)
    for event in events:
        drafting.settled(view.take(StoredEvent(event=event)))
    return view, drafting


def started(number: int, attempt: int, turn: int = 1) -> LogEvent:
    return LogEvent(number=number, kind="model.started", at_ms=0, run=1, turn=turn, data={"attempt": attempt})


def test_only_the_attempt_that_the_log_says_is_under_way_is_shown() -> None:
    view, drafting = view_of()
    assert drafting.chunk(Draft(1, 1, "early")) is None  # the log has not come so far here
    view.take(StoredEvent(event=started(1, attempt=1)))
    assert drafting.chunk(None) is None
    assert drafting.chunk(Draft(1, 1, "one")) is not None
    assert drafting.chunk(Draft(1, 1, "one")) is None
    view.take(StoredEvent(event=started(2, attempt=2)))
    assert drafting.chunk(Draft(1, 1, "one and more")) is None  # from one that has lost its turn
    again = drafting.chunk(Draft(1, 2, "anew"))
    assert again is not None
    assert not again.append
    view.take(StoredEvent(event=LogEvent(number=3, kind="model.answered", at_ms=0, run=1, turn=1)))
    assert drafting.chunk(Draft(1, 2, "anew and late")) is None


def test_a_draft_of_a_run_that_was_stopped_is_taken_back_once() -> None:
    view, drafting = view_of(started(1, attempt=1))
    assert drafting.chunk(Draft(1, 1, "one")) is not None
    ended = LogEvent(number=2, kind="run.ended", at_ms=0, run=1, data={"end": "stopped"})
    update = view.take(StoredEvent(event=ended))
    taken_back = drafting.settled(update)
    assert taken_back is not None
    assert (taken_back.append, taken_back.last_chunk, taken_back.artifact.parts[0].text) == (False, True, "")
    assert drafting.settled(update) is None


# --- between processes ----------------------------------------------------------------------------------------------

NARRATOR = """
import asyncio, os, signal
from pathlib import Path
from perdure import Agent
from perdure.core.content import ModelReply

HERE = Path(__file__).parent

class Narrator:
    name = "narrator"

    async def reply(self, request, on_delta, blobs):
        text = "one two three" if request.attempt > 1 else "half an answ"
        for word in text.split(" "):
            on_delta(word + " ")
            await asyncio.sleep(0.05)
        while not (HERE / f"read-{request.attempt}").exists():
            await asyncio.sleep(0.02)
        if request.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return ModelReply(text=text, model=self.name)

agent = Agent("narrator", model=Narrator())
"""


@pytest.mark.slow
def test_a_client_reads_along_while_the_worker_dies(tmp_path: Path) -> None:
    """The worker is another process than the server; its death in the middle of a reply begins the draft anew."""
    house, found = House(tmp_path, "narrator:agent"), Shown()
    (tmp_path / "narrator.py").write_text(NARRATOR)
    try:
        house.open()
        with house.stream("SendStreamingMessage", {"message": said("tell me")}) as events:
            for _, response in events:
                found.take(response)
                for attempt, text in ((1, "half an answ "), (2, "one two three ")):
                    if found.drafts and found.drafts[-1]["attempt"] == attempt and text in found.artifacts.values():
                        (tmp_path / f"read-{attempt}").touch()
    finally:
        house.close()
    assert found.artifacts == {"turn-1": "one two three"}
    assert found.numbers == list(range(len(found.numbers)))
    begun = [(each["attempt"], each["append"]) for each in found.drafts if not each["append"]]
    assert begun == [(1, False), (2, False)]
