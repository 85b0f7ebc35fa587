"""The agent that the A2A conformance kit is run against (README.md beside this file says how).

The kit tells the agent what to do by the beginning of a message's id. Its scenarios are this table; the model is a
script over the transcript, so every run is the same.
"""

from typing import Final

from perdure import Agent, Artifact, File, tool
from perdure.core.content import Entry, UserEntry
from perdure.core.errors import ModelError
from perdure.testing import call, fail, last_result, last_user, replies, say, scripted
from perdure.testing.script import Step

LONG_S: Final = 4.0
"""How long the task of the resubscription scenario runs: twice the kit's streaming timeout, which is 2 s."""

TEXTS: Final = {
    "tck-complete-task": "Hello from TCK",
    "tck-message-response": "Direct message response",
    "tck-artifact-text": "Generated text content",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
    "tck-stream-ordering-001": "Ordered output",
    "tck-stream-artifact-text": "Streamed text content",
    "tck-stream-artifact-chunked": "chunk-1 chunk-2",
}
"""What is answered where the scenario is one text."""


ARTIFACTS: Final = {
    "tck-artifact-file-url": Artifact(
        "output", File("text/plain", name="output.txt", url="https://example.com/output.txt")
    ),
    "tck-artifact-file": Artifact("output", File("text/plain", name="output.txt", data=b"tck")),
    "tck-stream-artifact-file": Artifact("output", File("text/plain", name="output.txt", data=b"tck")),
    "tck-artifact-data": Artifact("output", {"key": "value", "count": 42}),
}
"""What is handed over where the scenario is a file or data; the longer of two prefixes comes first."""


@tool(effect="read")
async def hand_over(scenario: str) -> Artifact:
    """Hand over what the scenario asks for."""
    return ARTIFACTS[scenario]


def step(transcript: tuple[Entry, ...]) -> Step | ModelError:
    """Answer as the scenario of the latest message says."""
    message_id = _latest_id(transcript)
    if message_id.startswith("tck-input-required"):
        return _questions(transcript)
    if message_id.startswith("tck-reject-task"):
        return fail("rejected")
    if message_id.startswith("test-resubscribe-message-id"):
        return say("done", delay_s=LONG_S)
    for prefix in ARTIFACTS:
        if message_id.startswith(prefix):
            return say("done") if replies(transcript) else call("hand_over", {"scenario": prefix})
    for prefix, text in TEXTS.items():
        if message_id.startswith(prefix):
            return say(text, stream=prefix.startswith("tck-stream"))
    return say(f"You said: {last_user(transcript)}")


def _latest_id(transcript: tuple[Entry, ...]) -> str:
    ids = [entry.message.message_id for entry in transcript if isinstance(entry, UserEntry)]
    return ids[-1] if ids else ""


def _questions(transcript: tuple[Entry, ...]) -> Step:
    """Ask, and ask again while the answers are those with which the kit fills a task's history."""
    if not replies(transcript) or last_result(transcript).startswith("TCK history message"):
        return call("ask_participant", {"question": "What next?"})
    return say(TEXTS["tck-complete-task"])


agent = Agent(
    "tck",
    model=scripted(step, loop=True),
    tools=[hand_over],
    description="Does what the scenarios of the A2A conformance kit say.",
    on_unanswered="fail",
    direct=lambda message: message.message_id.startswith("tck-message-response"),
)
