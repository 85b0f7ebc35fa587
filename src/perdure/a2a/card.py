"""The agent's card: what it says of itself to whoever asks (A2A 4.4.1, 8).

Made from the agent, from where it is served, and from what is offered there: what a server cannot do the card does not
claim. Fields that only 0.3 clients look for are added where those are served (the SDK's routes do it).
"""

from typing import Final

from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol

from perdure.a2a import extension
from perdure.app.agent import Agent
from perdure.app.offer import Offer

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


def agent_card(agent: Agent, url: str, offer: Offer) -> AgentCard:
    """Return the card of an agent that is served at `url`."""
    return AgentCard(
        name=agent.id,
        description=agent.description or f"The agent {agent.id}.",
        version=agent.version,
        supported_interfaces=_interfaces(url.rstrip("/"), offer),
        capabilities=AgentCapabilities(
            streaming=offer.streaming,
            push_notifications=offer.push_notifications,
            extended_agent_card=offer.extended_card,
            extensions=[
                AgentExtension(
                    uri=extension.URI,
                    description=extension.DESCRIPTION,
                    required=False,
                    params=extension.parameters(),
                ),
                *(AgentExtension(uri=uri, required=True) for uri in offer.requires),
            ],
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


def _interfaces(root: str, offer: Offer) -> list[AgentInterface]:
    """Return where each binding is, the preferred first (A2A 8.3.1); paths are appended to the URL of HTTP+JSON."""
    places = [(TransportProtocol.JSONRPC, f"{root}/"), (TransportProtocol.HTTP_JSON, root)]
    if offer.grpc:
        places.append((TransportProtocol.GRPC, offer.grpc))
    return [
        AgentInterface(url=place, protocol_binding=binding, protocol_version=version)
        for version in (PROTOCOL_VERSION_1_0, *((PROTOCOL_VERSION_0_3,) if offer.v0_3 else ()))
        for binding, place in places
    ]
