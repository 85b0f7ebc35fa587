"""The agent's card: what it says of itself to whoever asks (A2A 4.4.1, 8).

Made from the agent and from where it is served. What the server cannot do the card does not claim: capabilities are
arguments here, set by whoever wires them.
"""

from typing import Final

from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol

from perdure.a2a import extension
from perdure.app.agent import Agent

INPUT_MODES: Final = (
    "text/plain",
    "text/markdown",
    "text/csv",
    "text/html",
    "application/json",
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
)
"""What a message's parts may be. A model that does not take a kind is told of the file by name (`models/files.py`)."""

OUTPUT_MODES: Final = ("text/plain",)
BINDINGS: Final = (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)


def agent_card(agent: Agent, url: str, *, streaming: bool = True, push_notifications: bool = False) -> AgentCard:
    """Return the card of an agent that is served at `url`, on the HTTP bindings and in both versions."""
    root = url.rstrip("/")
    return AgentCard(
        name=agent.id,
        description=agent.description or f"The agent {agent.id}.",
        version=agent.version,
        supported_interfaces=[
            AgentInterface(url=f"{root}/", protocol_binding=binding, protocol_version=version)
            for version in (PROTOCOL_VERSION_1_0, PROTOCOL_VERSION_0_3)
            for binding in BINDINGS
        ],
        capabilities=AgentCapabilities(
            streaming=streaming,
            push_notifications=push_notifications,
            extended_agent_card=False,
            extensions=[AgentExtension(uri=extension.URI, description=extension.DESCRIPTION, required=False)],
        ),
        default_input_modes=INPUT_MODES,
        default_output_modes=OUTPUT_MODES,
        skills=[
            AgentSkill(
                id=agent.id,
                name=agent.id,
                description=agent.description or f"Everything that the agent {agent.id} does.",
                tags=["agent"],
            )
        ],
    )
