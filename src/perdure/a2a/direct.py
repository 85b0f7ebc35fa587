"""Answering with a Message in place of a Task, where the agent's author wants that (A2A 3.1.1 leaves it to the agent).

Only the form of the answer changes. The task is there all the same, durable, listed and named in the message, so that a
client that lost its connection still has it. What did not simply end answered (a question, a failure, files handed
over) is told as the task that it is.
"""

from a2a.types.a2a_pb2 import Message, Role, SendMessageRequest, Task, TaskState

from perdure.app.agent import Agent
from perdure.core import content
from perdure.core.digests import safe_text


def wants_message(agent: Agent, params: SendMessageRequest) -> bool:
    """Whether this request opens a task whose answer is to be a message; its client waits for it."""
    given = params.message
    if agent.direct is None or given.task_id or params.configuration.return_immediately:
        return False
    texts = tuple(content.TextPart(text=safe_text(part.text)) for part in given.parts if part.HasField("text"))
    return agent.direct(content.Message(message_id=given.message_id, parts=texts))


def as_message(task: Task) -> Message | None:
    """Return the answer of a task, None where the task says more than one message can."""
    if task.status.state != TaskState.TASK_STATE_COMPLETED or len(task.artifacts) != 1:
        return None
    return Message(
        message_id=f"{task.id}-answer",
        task_id=task.id,
        context_id=task.context_id,
        role=Role.ROLE_AGENT,
        parts=task.artifacts[0].parts,
    )
