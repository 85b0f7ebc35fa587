"""The agent of `bench.front` as the SDK's default server serves it: its handler, its event queue, its store in memory.

    python -m bench.front_sdk PORT

It tells of every step that the other one tells of: two events for a model call, two for a tool call.
"""

import asyncio
import sys
from typing import Final

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from starlette.applications import Starlette

from bench.front_script import ANSWER_ONLY, PAUSE_S, TURNS, note
from perdure.a2a import extension
from perdure.a2a.card import agent_card
from perdure.app.agent import Agent
from perdure.app.offer import Offer
from perdure.testing import say, scripted

WORKING: Final = TaskState.TASK_STATE_WORKING


class Front(AgentExecutor):
    """The same turns, in the request."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one task."""
        task_id, context_id, given = context.task_id, context.context_id, context.message
        if task_id is None or context_id is None or given is None:
            raise ValueError("a request without a message")
        number = 0
        submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=submitted, history=[given]))

        async def tell(update: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> None:
            nonlocal number
            number += 1
            extension.put(update.metadata, {"generation": str(number)})
            note(task_id, [number])
            await event_queue.enqueue_event(update)

        def status(state: TaskState, text: str = "") -> TaskStatusUpdateEvent:
            said = Message(message_id=f"{task_id}-{number}", role=Role.ROLE_AGENT, parts=[Part(text=text or "…")])
            return TaskStatusUpdateEvent(
                task_id=task_id, context_id=context_id, status=TaskStatus(state=state, message=said)
            )

        turns = 0 if given.parts[0].text == ANSWER_ONLY else TURNS
        for turn in range(turns):
            await tell(status(WORKING, f"model {turn}"))
            await asyncio.sleep(PAUSE_S)
            await tell(status(WORKING, f"answered {turn}"))
            await tell(status(WORKING, f"look {turn}"))
            await tell(status(WORKING, f"found {turn}"))
        await tell(status(WORKING, "model"))
        artifact = Artifact(artifact_id="answer", parts=[Part(text="done")])
        await tell(TaskArtifactUpdateEvent(task_id=task_id, context_id=context_id, artifact=artifact, last_chunk=True))
        await tell(status(TaskState.TASK_STATE_COMPLETED, "done"))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nobody cancels here."""
        raise NotImplementedError


def main() -> None:
    port = int(sys.argv[1])
    card = agent_card(Agent("front", model=scripted(say("done"))), f"http://127.0.0.1:{port}", Offer())
    handler = DefaultRequestHandler(agent_executor=Front(), task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
