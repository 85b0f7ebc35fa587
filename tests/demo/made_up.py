"""A made-up demo in which everything went well: what the verdict's tests take apart, one piece at a time."""

from typing import Any, Literal

from pydantic import JsonValue

from perdure.app.events import TaskEvent
from perdure.cli.demo.call_log import ReceivedCall
from perdure.cli.demo.evidence import Evidence, Kill, Notes, Waiting
from perdure.cli.demo.waits import Wait
from perdure.cli.demo.world import BLENDER_ORDER, KETTLE_ORDER
from perdure.core.attempts import AttemptOutcome, AttemptRow
from perdure.core.content import Entry, ModelEntry, ModelReply
from perdure.core.log import LogKind
from perdure.core.ports import EffectAttemptRow, EffectRow

TASK = "t-1"
NUMBER = "TRK-0123456789"
WORKERS = (101, 102, 103)


class Telling:
    """Tells the same story to all witnesses, so that they agree."""

    def __init__(self, kill: Kill) -> None:
        self.kill = kill
        self.events: list[TaskEvent] = []
        self.history: list[AttemptRow] = []
        self.effects: list[EffectRow] = []
        self.calls: list[ReceivedCall] = []
        self.worker = 0
        self.turn = 0

    @property
    def identity(self) -> str:
        return f"{WORKERS[self.worker]}@host#{self.worker}"

    def log(self, kind: LogKind, *entries: Entry, turn: int = 0, **data: JsonValue) -> None:
        number = len(self.events) + 1
        self.events.append(TaskEvent(number, kind, number * 10, 1, turn, data, entries))

    def attempt(self, activity: str, attempt: int = 1, outcome: AttemptOutcome = "completed", **where: Any) -> None:
        row = AttemptRow(
            activity=activity, attempt=attempt, outcome=outcome, worker=self.identity, scheduled_at_ms=0, **where
        )
        self.history.append(row)

    def model(self, text: str = "") -> None:
        self.turn += 1
        self.log("model.started", turn=self.turn, attempt=1)
        self.attempt("invoke_llm", turn=self.turn)
        reply = ModelReply(text=text)
        self.log("model.answered", ModelEntry(reply=reply), turn=self.turn, attempt=1, calls=[])

    def tool(
        self,
        tool: str,
        effect: Literal["read", "idempotent", "once"] = "read",
        outcome: str = "answered",
        *,
        cut: bool = False,
        **arguments: str,
    ) -> None:
        key = f"{TASK}/{self.turn}/0"
        begun: list[EffectAttemptRow] = []
        for attempt in (1, 2) if cut else (1,):
            lost = cut and attempt == 1
            told: dict[str, JsonValue] = {"index": 0, "tool": tool, "attempt": attempt, "key": key}
            self.log("tool.started", turn=self.turn, **told)
            self.attempt("invoke_tool", attempt, "failed" if lost else "completed", turn=self.turn, index=0, tool=tool)
            begun.append(EffectAttemptRow(attempt=attempt, worker=self.identity, begun_at_ms=0))
            self.calls.append(ReceivedCall(len(self.calls) + 1, key, tool, dict(arguments), 0, outcome, NUMBER))
            if lost:
                self.log("tool.failed", turn=self.turn, failure="worker_died", message="its worker died", **told)
                self.worker += 1
            else:
                self.log("tool.finished", turn=self.turn, status="ok", **told)
        self.effects.append(
            EffectRow(
                key=key,
                task_id=TASK,
                turn=self.turn,
                index=0,
                tool=tool,
                effect=effect,
                outcome="done",
                status="ok",
                begun=tuple(begun),
                late=False,
                done_at_ms=0,
            )
        )


def good(kill: Kill = "twice", *, scripted: bool = True) -> Evidence:
    """Return the evidence of a demo in which every promise held."""
    told = Telling(kill)
    told.log("task.created")
    told.log("task.status", state="submitted", reason="")
    told.log("message.admitted", message_id="m-1")
    told.attempt("intake")
    told.log("run.started")
    told.log("task.status", state="working", reason="")
    told.log("message.promoted", message_id="m-1")
    told.model()
    told.tool("get_order", "idempotent", cut=kill == "twice", order_id=BLENDER_ORDER)
    told.model()
    told.log("help.requested", turn=2, help_id="t-1/2/0", text="which?")
    told.log("task.status", state="input_required", reason="help")
    told.attempt("emit_event")
    waiting = Waiting(attempts=len(told.history))
    told.worker += 1
    told.log("help.answered", turn=2, help_id="t-1/2/0", text="a replacement")
    told.log("task.status", state="working", reason="")
    told.model()
    told.tool("ship_replacement", "once", "applied", order_id=BLENDER_ORDER, address="here")
    told.model(f"It is on its way: {NUMBER}.")
    told.log("run.ended", end="answered", reason="")
    told.log("task.status", state="completed", reason="", unprocessed=[])
    told.attempt("persist")
    orders: list[dict[str, Any]] = [{"order_id": BLENDER_ORDER}, {"order_id": KETTLE_ORDER}]
    shipment = {"order_id": BLENDER_ORDER, "item": "blender", "address": "here", "tracking_number": NUMBER}
    notes = Notes(
        task_id=TASK,
        kill=kill,
        scripted=scripted,
        by_hand=False,
        orders_before=tuple(orders),
        workers=WORKERS[: told.worker + 1],
        deaths=(-9,) * told.worker,
        killed=WORKERS[: told.worker],
        killed_at_ms=(0,) * told.worker,
        held_key="t-1/1/0" if kill == "twice" else "",
        seen=tuple(range(1, len(told.events) + 1)),
        waiting=waiting,
    )
    return Evidence(
        notes=notes,
        calls=tuple(told.calls),
        snapshot={"orders": orders, "shipments": [shipment], "refunds": []},
        history=tuple(told.history),
        events=tuple(told.events),
        effects=tuple(told.effects),
        waits=(Wait(began_ms=100, ended_ms=900),),
    )
