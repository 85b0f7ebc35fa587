"""A made-up run of an agent with one `once` tool: what the tests of floor and verdict take apart."""

from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from perdure.app.events import TaskEvent
from perdure.cli.chaos.evidence import Applied, Evidence, Kill
from perdure.cli.chaos.schedule import PlannedKill
from perdure.core.attempts import AttemptRow
from perdure.core.content import ModelEntry, ModelReply, ToolCall, ToolEntry, ToolResult
from perdure.core.log import LogKind
from perdure.core.ports import EffectAttemptRow, EffectRow, ModelCallRow

TASK = "t-1"
KEY = f"{TASK}/1/0"
FIRST, SECOND = "101@host#a", "102@host#b"


class Telling:
    """Numbers events as they are told."""

    def __init__(self) -> None:
        self.events: list[TaskEvent] = []

    def tell(self, kind: LogKind, at_ms: int, turn: int = 0, *entries: Any, **data: JsonValue) -> None:
        number = len(self.events) + 1
        self.events.append(TaskEvent(number, kind, at_ms, 1, turn, data, entries))


def told_events() -> tuple[TaskEvent, ...]:
    """A refund whose first attempt died at 1500 and whose second was done at 4000."""
    telling = Telling()
    telling.tell("task.created", 0)
    telling.tell("message.admitted", 0, message_id="m-1")
    telling.tell("run.started", 0)
    telling.tell("message.promoted", 0, message_id="m-1")
    telling.tell("model.started", 100, 1, attempt=1)
    asked = ModelReply(text="", calls=(ToolCall(call_id="c", tool="refund", arguments={}),))
    telling.tell("model.answered", 200, 1, ModelEntry(reply=asked), attempt=1)
    telling.tell("tool.started", 300, 1, index=0, tool="refund", attempt=1, key=KEY)
    telling.tell("tool.failed", 1600, 1, index=0, attempt=1, failure="worker_died", message="its worker died")
    telling.tell("tool.started", 1700, 1, index=0, tool="refund", attempt=2, key=KEY)
    result = ToolResult(call_id="c", tool="refund", status="ok", text="paid")
    telling.tell("tool.finished", 4010, 1, ToolEntry(result=result), index=0, attempt=2, status="ok")
    telling.tell("model.started", 4100, 2, attempt=1)
    telling.tell("model.answered", 4200, 2, ModelEntry(reply=ModelReply(text="paid")), attempt=1)
    telling.tell("run.ended", 4200, end="answered")
    telling.tell("task.status", 4200, state="completed")
    return tuple(telling.events)


def effect(**changes: Any) -> EffectRow:
    row = EffectRow(
        key=KEY,
        task_id=TASK,
        turn=1,
        index=0,
        tool="refund",
        effect="once",
        outcome="done",
        status="ok",
        begun=(EffectAttemptRow(attempt=1, worker=FIRST, begun_at_ms=400),),
        late=False,
        done_at_ms=4000,
    )
    return row.model_copy(update=changes)


def ended(attempt: int, scheduled_at_ms: int, ended_at_ms: int | None, **fields: Any) -> AttemptRow:
    fields = {"activity": "invoke_tool", "turn": 1, "index": 0, "tool": "refund", **fields}
    return AttemptRow(attempt=attempt, scheduled_at_ms=scheduled_at_ms, ended_at_ms=ended_at_ms, **fields)


MODELS = (
    ended(1, 100, 200, activity="invoke_llm", turn=1, index=None, tool=""),
    ended(1, 4100, 4200, activity="invoke_llm", turn=2, index=None, tool=""),
)


def kill(at_ms: int, pid: int = 101, **changes: Any) -> Kill:
    return Kill(target="worker", at_ms=at_ms, pids=(pid,), busy=True).model_copy(update=changes)


def evidence(**changes: Any) -> Evidence:
    """A run in which everything went well: one kill, found at once, and one refund in the world."""
    events = told_events()
    whole = Evidence(
        task_id=TASK,
        mode="supervised",
        seed=1,
        plan=(PlannedKill(gap_s=1.5, target="worker", draw=0),),
        kills=(kill(1500),),
        lasted_s=4.2,
        acknowledged=("m-1",),
        followed=(tuple(event.number for event in events),),
        state="completed",
        reason="",
        events=events,
        attempts=(*MODELS, ended(1, 300, 1600), ended(2, 1700, 4010)),
        history=(),
        effects=(effect(),),
        model_calls=(
            ModelCallRow(turn=1, attempt=1, worker=FIRST, begun_at_ms=110),
            ModelCallRow(turn=2, attempt=1, worker=SECOND, begun_at_ms=4110),
        ),
        world=(Applied(key=KEY, tool="refund"),),
        covered=frozenset({"refund"}),
    )
    return replace(whole, **changes)
