"""The activities: where the workflow's decisions meet the store, the model and the tools.

This is one of the two places with a blanket `except`: whatever a model or a tool raises is classified once, here, and
goes to the workflow as a typed `Failure`. Cancellation always propagates, told apart from a worker's shutdown.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from temporalio import activity

from perdure.core import asking_limits, faults
from perdure.core.agent import EffectClass
from perdure.core.approvals import edited_note
from perdure.core.commands import CallModel
from perdure.core.content import ModelEntry, ToolCall
from perdure.core.digests import canonical
from perdure.core.effects import EffectRequest, Late, request_digest
from perdure.core.errors import ConfigurationError, StoreAhead
from perdure.core.events import CallSummary
from perdure.core.failure import Failure
from perdure.core.limits import (
    HEARTBEAT_EVERY_S,
    INLINE_ARGUMENTS_BYTES_MAX,
    REPLIES_KEPT_MAX,
    STORE_WRITE_HEARTBEAT_TIMEOUT_S,
)
from perdure.core.ports import Execution, ModelPort, ModelRequest, RecordedReply, Store, ToolSchema
from perdure.core.questions import Examined
from perdure.core.shortening import shortened
from perdure.core.tool_calls import ToolExecutor
from perdure.temporal.approved import approved_call, denial
from perdure.temporal.contexts import Contexts
from perdure.temporal.contracts import ModelInput, ModelOutput, ToolInput, WriteInput, WriteOutput
from perdure.temporal.failures import as_application_error, classify
from perdure.temporal.references import References


@dataclass(frozen=True)
class LiveAgent:
    """An agent as a worker holds it.

    `examine` says of a call why it must not run, what it asks a person, and what the rules came to for it. `fallbacks`
    are the models that take over for `model`, in order.
    """

    agent_id: str
    instructions: str
    model: ModelPort
    schemas: tuple[ToolSchema, ...]
    executor: ToolExecutor
    examine: Callable[[ToolCall], Examined]
    fallbacks: tuple[ModelPort, ...] = ()

    def model_for(self, command: CallModel) -> ModelPort:
        """Return the model that an attempt asks: by its name, since the agent may have changed since its task began.

        A task whose model has no such name here is served by the one in its place, as it always was by the first.

        Raises `ConfigurationError` where this worker's agent has neither.
        """
        models = (self.model, *self.fallbacks)
        if command.fallback < len(models) and models[command.fallback].name == command.model:
            return models[command.fallback]
        named = next((model for model in models if model.name == command.model), None)
        if named is not None:
            return named
        if command.fallback < len(models):
            return models[command.fallback]
        raise ConfigurationError("Agent.fallbacks", f"this worker has no model {command.model!r}; put it back")


class TaskActivities:
    """The activities of tasks, over one store and the agents that this worker serves.

    `beat_every_s`: how often a call that is under way says so. On a server that tells a worker of a stop by itself it
    only shows that the worker lives; on any other the answer to it is how a call hears of its stop.
    """

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, LiveAgent],
        worker: str,
        now_ms: Callable[[], int],
        on_delta: Callable[[str, int, int, str], None] = lambda task, turn, attempt, text: None,
        beat_every_s: float = HEARTBEAT_EVERY_S,
    ) -> None:
        self._store = store
        self._agents = agents
        self._worker = worker
        self._now_ms = now_ms
        self._on_delta = on_delta
        self._beat_every_s = beat_every_s
        self._references = References(store)
        self._contexts = Contexts(store)
        self._calls: dict[tuple[str, str], tuple[ToolCall, ...]] = {}

    def calls(self) -> list[Callable[..., object]]:
        """Return the activities that call models and tools."""
        return [self.invoke_llm, self.invoke_tool]

    def writes(self) -> list[Callable[..., object]]:
        """Return the activities that only write to the store."""
        return [self.intake, self.emit_event, self.persist]

    @activity.defn(name="intake")
    async def intake(self, given: WriteInput) -> WriteOutput:
        """Make messages durable (R3), or look one up by an id that the workflow has forgotten (P1)."""
        return await self._write("intake", given)

    @activity.defn(name="emit_event")
    async def emit_event(self, given: WriteInput) -> WriteOutput:
        """Write rows that no other activity takes along."""
        return await self._write("emit_event", given)

    @activity.defn(name="persist")
    async def persist(self, given: WriteInput) -> WriteOutput:
        """Write the state at a run's end, or a stop's fence (P5, P9)."""
        return await self._write("persist", given)

    async def _write(self, name: str, given: WriteInput) -> WriteOutput:
        async with self._edge(None, STORE_WRITE_HEARTBEAT_TIMEOUT_S):
            if given.look_up is not None:
                return WriteOutput(known=await self._store.admission(given.batch.task_id, given.look_up))
            concerns = (given.batch.task_id, *(message.message_id for message in given.batch.messages))
            faults.reach(f"{name}.before", *concerns)
            await self._store.write(given.batch, self._now_ms())
            faults.reach(f"{name}.after", *concerns)
        return WriteOutput()

    @activity.defn(name="invoke_llm")
    async def invoke_llm(self, given: ModelInput) -> ModelOutput:
        """Make one attempt at a model call, unless its answer is recorded already (P2)."""
        command, task_id = given.command, given.batch.task_id
        async with self._edge(None, given.command.heartbeat_timeout_s):
            agent = self._agent(given.agent_id)
            model = agent.model_for(command)
            faults.reach("model.before_start", task_id, model.name)
            begun = await self._store.begin_model(
                given.batch,
                command.run,
                command.turn,
                command.attempt,
                self._worker,
                self._now_ms(),
                command.upto,
                command.chain,
                model.name,
            )
            if isinstance(begun, RecordedReply):
                recorded = begun
            else:
                faults.reach("model.started", task_id, model.name)
                earlier = await self._contexts.before(task_id)
                transcript = (*earlier, *await self._references.informed(task_id, begun))
                request = ModelRequest(
                    task_id=task_id,
                    turn=command.turn,
                    attempt=command.attempt,
                    instructions=agent.instructions,
                    transcript=transcript,
                    tools=agent.schemas,
                )

                def on_delta(text: str) -> None:
                    self._on_delta(task_id, command.turn, command.attempt, text)

                # When the call waits for the first time, it is under way.
                inside = asyncio.get_running_loop().call_soon(faults.reach, "model.inside", task_id, model.name)
                reply = await model.reply(request, on_delta, self._store.get_blob)
                inside.cancel()
                faults.reach("model.replied", task_id, model.name)
                recorded = await self._store.record_reply(task_id, command.turn, command.attempt, reply, self._now_ms())
                faults.reach("model.recorded", task_id, model.name)
            self._keep_calls(task_id, recorded.digest, recorded.reply.calls)
            late = await self._store.late_results(task_id, command.watch) if command.watch else ()
            return self._summary(agent, recorded, late)

    @activity.defn(name="invoke_tool")
    async def invoke_tool(self, given: ToolInput) -> Execution:
        """Make one attempt at a tool call, through the ledger (P3, P4)."""
        command, task_id = given.command, given.batch.task_id
        effect: EffectClass = command.effect
        async with self._edge(effect, command.heartbeat_timeout_s):
            agent = self._agent(given.agent_id)
            calls = await self._calls_of(task_id, command.reply_digest)
            if command.index >= len(calls):
                raise StoreAhead(f"entry {command.reply_digest} of task {task_id} has no call {command.index}")
            call = approved_call(task_id, command, calls[command.index])
            request = EffectRequest(
                key=command.key,
                task_id=task_id,
                run=command.run,
                turn=command.turn,
                index=command.index,
                attempt=command.attempt,
                tool=command.tool,
                effect=effect,
                request_digest=command.arguments_digest,
                worker=self._worker,
                resolve_only=command.resolve_only,
                answer=command.answer,
                schema_digest=command.schema_digest,
                note=edited_note(command.approval),
            )
            denied = denial(agent.examine, command, call)
            if denied:
                request = request.model_copy(update={"resolve_only": True})
            execution = await agent.executor.execute(
                given.batch, request, command.call_id, call.arguments or {}, command.word
            )
            if denied and execution.outcome == "not_begun":
                execution = execution.model_copy(update={"reason": denied})
            faults.reach("tool.before_completion", command.tool, task_id)
            return execution

    async def _calls_of(self, task_id: str, reply_digest: str) -> tuple[ToolCall, ...]:
        """Return a reply's calls: from memory where this worker recorded it, from the store everywhere else."""
        kept = self._calls.get((task_id, reply_digest))
        if kept is not None:
            return kept
        entry = await self._store.read_entry(task_id, reply_digest)
        if not isinstance(entry, ModelEntry):
            raise StoreAhead(f"entry {reply_digest} of task {task_id} is no model's reply")
        return entry.reply.calls

    def _keep_calls(self, task_id: str, reply_digest: str, calls: tuple[ToolCall, ...]) -> None:
        # A digest names one content for ever, so that what is kept can never be stale.
        self._calls[task_id, reply_digest] = calls
        while len(self._calls) > REPLIES_KEPT_MAX:
            del self._calls[next(iter(self._calls))]

    def _agent(self, agent_id: str) -> LiveAgent:
        agent = self._agents.get(agent_id)
        if agent is None:
            raise ConfigurationError("agent", f"this worker does not serve {agent_id!r}, only {sorted(self._agents)}")
        return agent

    @staticmethod
    def _summary(agent: LiveAgent, recorded: RecordedReply, late: tuple[Late, ...]) -> ModelOutput:
        reply = recorded.reply
        return ModelOutput(
            digest=recorded.digest,
            finish=reply.finish,
            has_text=bool(reply.text.strip()),
            calls=tuple(_summarised(call, agent.examine(call)) for call in reply.calls),
            usage=reply.usage,
            model=reply.model,
            late=late,
        )

    @contextlib.asynccontextmanager
    async def _edge(self, effect: EffectClass | None, heartbeat_timeout_s: float) -> AsyncIterator[None]:
        """Heartbeat thrice within the timeout at least while the body runs, and classify whatever it raises."""
        beating = _Beating(min(self._beat_every_s, heartbeat_timeout_s / 3))
        try:
            yield
        except asyncio.CancelledError as error:
            if activity.is_worker_shutdown():
                raise as_application_error(Failure(kind="shutdown", message="the worker shut down")) from error
            raise
        except Exception as error:
            raise as_application_error(classify(error, effect)) from error
        finally:
            beating.cancel()


def _summarised(call: ToolCall, found: Examined) -> CallSummary:
    asks = found.ruling is not None and found.ruling.then == "ask"
    shown, cut = None, False
    if call.arguments is not None and asks:
        shown, cut = shortened(call.tool, call.arguments, asking_limits.SHOWN_BYTES_MAX)
    elif call.arguments is not None:
        arguments = canonical(call.arguments)
        shown = arguments.decode() if len(arguments) <= INLINE_ARGUMENTS_BYTES_MAX else None
    return CallSummary(
        call_id=call.call_id,
        tool=call.tool,
        arguments_digest=request_digest(call.tool, call.arguments or {}),
        arguments_json=shown,
        arguments_cut=cut,
        problem=found.problem,
        question=found.question,
        manner=found.manner,
        ruling=found.ruling,
        unknown=found.unknown,
    )


class _Beating:
    """Heartbeats of the current activity, every `every_s` seconds until cancelled.

    The start counts as the first beat: one more would cost every short call a write in Temporal's database.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._timer = asyncio.get_running_loop().call_later(every_s, self._beat)

    def _beat(self) -> None:
        activity.heartbeat()
        self._timer = asyncio.get_running_loop().call_later(self._every_s, self._beat)

    def cancel(self) -> None:
        self._timer.cancel()
