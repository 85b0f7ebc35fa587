"""A task's life at random: everything that people, models, tools, workers and stores can do to it, in any order.

`Life` draws from a `random.Random`: a seeded one gives a life that can be lived again, Hypothesis's one gives lives
that shrink. `Task` has every step seen by the witness, and asked for what it owes. What a life adds: stale results must
be refused, a restart may come at any moment, and once everybody answers the task must come to rest with nothing lost.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from perdure.core import events
from perdure.core.agent import Budget, ModelSpec, RetryPolicy
from perdure.core.approvals import Ruling
from perdure.core.commands import CallModel, CallTool
from perdure.core.effects import Late
from perdure.core.errors import IllegalEvent, InvalidInput, MessageConflict, MessageNotWaiting, TaskClosed
from perdure.core.failure import Failure, FailureKind
from perdure.core.machine import step
from perdure.core.state import HelpRequest
from tests.core.task import TOOLS, Task, ask, asking, call

LOSSES: list[FailureKind] = ["worker_lost", "worker_died", "worker_died", "shutdown", "cancelled", "store"]
FAULTS: list[FailureKind] = ["timeout", "internal"]
RARE: list[FailureKind] = ["fenced", "diverged"]
MODEL_FAILURES: list[FailureKind] = [*LOSSES, *FAULTS, *RARE, "model_transient", "model_transient", "model_permanent"]
TOOL_FAILURES: list[FailureKind] = [*LOSSES, *FAULTS, *RARE, "tool_raised", "tool_raised", "in_doubt", "in_doubt"]
FORM: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
CALLS = (
    *[call("notify")] * 3,
    call("refund"),
    call("refund", "other"),
    *[call("get_order")] * 2,
    call("label"),
    call("pay"),
    *[call("post")] * 2,
    call("wire"),
    call("look_up"),
    call("none"),
    call("refund", problem="amount: not a number"),
    call("get_order", unknown=True),
    ask("sure?"),
    ask("which?", choices=("red", "blue")),
    ask("how many?", form=FORM, expires_in_s=60),
    asking("refund", '{"amount":150}'),
    asking("notify", '{"amount":150}', expires_in_s=60),
    asking("get_order"),
    asking("pay"),
    call("refund", ruling=Ruling(then="deny", rule="deny refund")),
)
BESIDE = (
    *[call("post")] * 2,
    call("notify"),
    call("wire"),
    asking("notify", '{"amount":9}'),
    ask("which?", choices=("red", "blue")),
    ask("how many?", form=FORM),
)
"""Calls that are under way together, each of which may come to be in doubt."""
WORKERS = ("", "w1", "w2", "w3")
REST_MAX = 400
"""Answers after which any life must have come to rest; far more than its tasks can ask for."""
AFTER_THE_END = 5
"""Steps of a life that has ended: enough to see that nothing is taken in and nothing changes."""
STATE_BYTES_MAX = 40_000
"""More than any state of these lives has; one that grows with each turn would pass it."""


class Life:
    """One task; its public methods are what may happen to it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.steps: list[str] = []
        self.late = 0
        self.calm = self.one(1, 4)
        """How much likelier it is that the work goes on than that somebody comes in between."""
        self.task = Task(
            stores=False,
            after_answer=self.one("input_required", "input_required", "input_required", "completed"),
            on_unanswered=self.one("input_required", "input_required", "input_required", "fail"),
            budget=Budget(
                turns_max=self.one(100, 100, 3, 2),
                wall_s_max=self.one(None, None, 2.0, 0.3),
                tokens_max=self.one(None, None, None, 25),
            ),
            crashes_max=self.one(3, 1),
            model=ModelSpec(name="m", retry=RetryPolicy(attempts_max=self.one(5, 2))),
            tools=tuple(t.model_copy(update={"retry": RetryPolicy(attempts_max=self.one(3, 2, 1))}) for t in TOOLS),
            fallbacks=tuple(
                ModelSpec(name=f"f{n}", retry=RetryPolicy(attempts_max=self.one(1, 2, 5)))
                for n in range(self.one(0, 0, 1, 2))
            ),
        )

    def one(self, *choices: Any) -> Any:
        """Draw one of these."""
        return choices[self.chance.randrange(len(choices))]

    def live(self, steps: int) -> None:
        """Live so many steps, and come to rest."""
        after = 0
        for _ in range(steps):
            after += self.task.state.terminal
            if after > AFTER_THE_END:
                break
            happens = self.one(*self.possible())
            self.steps.append(happens.__name__)
            happens()
        self.rest()

    def possible(self) -> list[Callable[[], None]]:
        """Return what may happen now, the likely more than once."""
        task = self.task
        idle = task.state.run is None and not task.state.terminal
        may: list[Callable[[], None]] = [self.send] * (8 if idle else 2) + [self.restart]
        may += [self.resend, self.stop_or_cancel, self.one(self.change_too_late, self.child_ends)] * bool(self.admitted)
        may += [self.kill] * 2 if task.flights else []
        may += [*[self.store] * 4, self.task.diverge] if task.unstored else []
        may += [self.move_or_withdraw] if task.state.inbox and not task.state.terminal else []
        may += [self.answer, self.answer_again] if task.state.help else []
        may += [self.answer] * 4 if task.state.help and self.winding else []
        may += [self.expire] if task.expiries else []
        may += [self.wait_over] * 4 * self.calm if task.waits else []
        if task.tools:
            may += [self.tool_finishes] * 4 * self.calm + [self.tool_fails] * 3
        elif task.flights:
            may += [self.reply] * 6 * self.calm + [self.model_fails] * 2
        return may

    @property
    def winding(self) -> bool:
        """Whether a run is open that is to end."""
        return self.task.state.mode == "ending"

    @property
    def ends(self) -> list[tuple[str, str]]:
        """End and reason of each of its runs."""
        return [(str(end), str(reason)) for end, reason in self.task.ends]

    # --- people -------------------------------------------------------------------------------------------------

    def send(self) -> None:
        """A new message, stored at once or later."""
        try:
            self.task.send(f"m{len(self.task.rows('message.admitted'))}", self.one("queue", "steer", None))
        except TaskClosed:
            check(self.task.state.terminal or self.task.state.canceling, "P1: an open task refused a message")
        if self.one(True, True, False):
            self.task.store()

    def resend(self) -> None:
        """A known message, the same or with other content."""
        message = self.one(*self.admitted)
        same, before = self.one(True, False), self.task.state
        try:
            self.task.send(message, content=None if same else "other")
        except MessageConflict:
            check(not same, "P1: the same message was refused")
        except TaskClosed as error:
            raise AssertionError("P1: a message that is known was refused as a new one") from error
        else:
            check(same, "P1: other content under a used id was taken")
        check(self.task.state == before, "P1: a resend changed something")

    def store(self) -> None:
        """The row of one message is durable."""
        self.task.store(self.one(*self.task.unstored))

    @property
    def admitted(self) -> list[str]:
        """The ids of all messages that were ever taken in."""
        return [str(row.data["message_id"]) for row in self.task.rows("message.admitted")]

    def move_or_withdraw(self) -> None:
        """A sender thinks again, about one message or about all that wait."""
        waiting = [p.message_id for p in self.task.state.inbox]
        run = self.task.state.run
        all_of_it = [None] * (1 if run is None or run.fed else 6)
        change = self.one(*[self.task.move] * 4, *[self.task.withdraw] * 2, *all_of_it)
        if change is not None:
            change(self.one(*waiting))
            return
        for message_id in waiting:  # what is taken back may let another one run, or end the task
            if not self.task.state.terminal and any(p.message_id == message_id for p in self.task.state.inbox):
                self.task.withdraw(message_id)

    def change_too_late(self) -> None:
        """A sender thinks again about a message that does not wait any more: refused, and nothing changes."""
        before = self.task.state
        waiting = set() if before.terminal else {p.message_id for p in before.inbox}
        gone = [message_id for message_id in self.admitted if message_id not in waiting]
        try:
            self.one(self.task.move, self.task.withdraw)(self.one("never sent", *gone))
        except (TaskClosed, MessageNotWaiting):
            check(self.task.state == before, "R6: a refused change changed something")
        else:
            raise AssertionError("R6: a message was moved or taken back that did not wait")

    def child_ends(self) -> None:
        """A sub-task ends."""
        self.task.apply(events.ChildDone(at_ms=self.task.at(), child_id="child", status="completed"))

    def stop_or_cancel(self) -> None:
        """A person stops the run, and rarely cancels the task, or when it is stopping already."""
        before = self.task.state
        if not self.one(*[False] * 19, True, *[self.winding or before.terminal] * 10):
            self.task.stop()
            return
        try:
            self.task.cancel()
        except TaskClosed:
            check(before.terminal and self.task.state == before, "P5: an open task refused a cancel")

    def answer(self) -> None:
        """A person answers, what can be taken or not."""
        request = self.one(*self.task.state.help)
        takes = takes_of(request)
        said, before = self.one(*takes, "hm"), self.task.state
        winding = before.run is not None and before.run.ending is not None
        carries = request.kind == "approval" or "/ask/" in request.help_id  # a call would go on with it
        try:
            self.task.answer(said, request.help_id, by=self.one("", "alice"))
        except InvalidInput:
            refused = said not in takes or (winding and carries)
            check(refused and self.task.state == before, "P4: a refused answer changed something")
        else:
            check(not (winding and carries), "P9: a word was taken that nothing goes on with")
            free = request.form is None and not request.choices
            check(free or said in takes, "P4: a word that says neither was taken")

    def answer_again(self) -> None:
        """What was answered, or never asked, takes no answer."""
        before, open_now = self.task.state, {request.help_id for request in self.task.state.help}
        known = [str(row.data["help_id"]) for row in self.task.rows("help.requested")]
        over = self.one("t/9999/0", "x", *[help_id for help_id in known if help_id not in open_now])
        try:
            self.task.answer("approve", over)
        except InvalidInput:
            check(self.task.state == before, "P4: a refused answer changed something")
        else:
            raise AssertionError("P4: a second answer was taken")

    def expire(self) -> None:
        """The time of a question is over."""
        self.task.expire(self.one(*sorted(self.task.expiries)))

    # --- attempts -----------------------------------------------------------------------------------------------

    def reply(self) -> None:
        """The model answers, mostly with calls."""
        among = self.one(CALLS, CALLS, CALLS, BESIDE)
        calls = [self.one(*among) for _ in range(self.one(0, 1, 2, 3, 4))]
        watched = [key for key in self.task.model.watch if self.one(True, False, False)]
        watched += [str(row.data["key"]) for row in self.task.rows("tool.late")[-1:]]  # what was told already
        late = tuple(Late(key=key, status=self.one("ok", "error"), text="it came late") for key in watched)
        self.task.reply(
            *calls, late=late, finish=self.one(*["stop"] * 30, "length", "refusal"), text=self.one(True, True, False)
        )

    def model_fails(self) -> None:
        """A model attempt fails."""
        flight = self.task.model
        self.task.model_fails(self.one(*MODEL_FAILURES), **self._failure(), elsewhere=self.one(True, False))
        self._refuses_stale(flight)

    def tool_finishes(self) -> None:
        """A tool attempt comes to something."""
        flight = self.one(*self.task.tools)
        outcomes = ("result", "result", "in_doubt", "in_doubt", "closed", "not_begun")
        # What only finds out what became of a call does not come to a question of the call's own.
        outcome = self.one(*outcomes, *(() if flight.resolve_only else ("asks",)))
        self.task.finish(flight.index, outcome, question="Really?", notes=self.one((), (), ("half done",)))
        self._refuses_stale(flight)

    def tool_fails(self) -> None:
        """A tool attempt fails."""
        flight = self.one(*self.task.tools)
        self.task.tool_fails(flight.index, self.one(*TOOL_FAILURES), **self._failure())
        self._refuses_stale(flight)

    def _failure(self) -> dict[str, Any]:
        return {
            "jitter": self.one(0.0, 0.999),
            "alone": self.one(True, False),
            "worker": self.one(*WORKERS),
            "retry_after_ms": self.one(None, None, 1_000, 100_000, 10_000_000),
        }

    def wait_over(self) -> None:
        """A backoff passes."""
        _, index = self.one(*sorted(self.task.waits, key=str))
        self.task.wait_over(index)

    def restart(self) -> None:
        """The task is carried over, as by continue-as-new and by every replay."""
        self.task.restart()

    def kill(self) -> None:
        """A worker dies with what it had under way, which may be a part of it; what it still says comes too late."""
        worker, alone = self.one(*WORKERS[1:]), self.one(True, False)
        for flight in [flight for flight in self.task.flights.values() if self.one(True, True, False)]:
            if isinstance(flight, CallModel):
                self.task.model_fails("worker_died", worker=worker, alone=alone)
            else:
                self.task.tool_fails(flight.index, "worker_died", worker=worker, alone=alone)
            self._refuses_stale(flight)
        self.task.restart()

    def _refuses_stale(self, flight: CallModel | CallTool) -> None:
        """A second answer of an attempt is illegal, a result as well as a failure, whatever became of the task."""
        said: dict[str, Any] = {"at_ms": 1, "turn": flight.turn, "attempt": flight.attempt}
        failure = {"failure": Failure(kind="worker_lost", message="late")}
        late: list[events.Event]
        if isinstance(flight, CallModel):
            reply = {"digest": "late", "finish": "stop", "has_text": True}
            late = [events.ModelFailed(**said, **failure), events.ModelReplied(**said, **reply)]
        else:
            said["index"] = flight.index
            result = {"outcome": "result", "digest": "late"}
            late = [events.ToolFailed(**said, **failure), events.ToolFinished(**said, **result)]
        for event in late:
            try:
                step(self.task.state, event)
            except IllegalEvent:
                self.late += 1
                continue
            raise AssertionError(f"P3: a second answer of {flight} was taken: {event}")

    # --- the end ------------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Let everybody answer: the task comes to rest, and every message has met its fate (P1)."""
        task = self.task
        answers = 0
        while self._answers():
            answers += 1
            check(answers < REST_MAX, "P7: the task does not come to rest")
        task.restart()
        check(task.state.run is None, "R7: a run is open at rest")
        admitted = {str(row.data["message_id"]) for row in task.log if row.kind == "message.admitted"}
        replied = max((row.number for row in task.log if row.kind == "model.answered"), default=0)
        told = {str(row.data["message_id"]): row.number for row in task.log if row.kind == "message.promoted"}
        acted_on = {name for name, number in told.items() if number < replied}
        waits = set(told) - acted_on if not task.state.terminal else set()
        withdrawn = {str(row.data["message_id"]) for row in task.log if row.kind == "message.withdrawn"}
        last: Any = task.log[-1].data.get("unprocessed")
        fates = [acted_on, waits, withdrawn, set(last) if task.state.terminal else set(task.parked)]
        check(admitted == set().union(*fates), "P1: a message was lost")
        check(len(admitted) == sum(map(len, fates)), "P1: a message was acted on and listed")
        check(len(task.state.model_dump_json()) < STATE_BYTES_MAX, "P7: the state has grown")

    def _answers(self) -> bool:
        """Give one answer; return whether there was anything to answer."""
        task = self.task
        if task.unstored:
            task.store()
        elif task.waits:
            task.wait_over(sorted(task.waits, key=str)[0][1])
        elif task.tools:
            task.finish(task.tools[0].index)
        elif task.flights:
            task.reply()
        elif task.state.help:
            task.answer(takes_of(task.state.help[0])[0])
        else:
            return False
        return True


def takes_of(request: HelpRequest) -> tuple[str, ...]:
    """Return answers that a question takes."""
    if request.form is not None:
        return ('{"n":3}',)
    if request.kind == "approval":
        edited = '{"approve": true, "arguments": {"amount": 50}}'
        bound = f'{{"approve": true, "digest": "{request.digest}"}}'
        return ("approve", "decline", "Decline: too much.", edited, bound)
    return request.choices or ("yes",)


def check(holds: bool, what: str) -> None:
    """Raise what broke."""
    if not holds:
        raise AssertionError(what)
