"""What a server offers of the protocol. The card says it and the operations keep to it (A2A 3.3.4)."""

from dataclasses import dataclass
from typing import Final

OPTIONAL: Final = ("streaming", "push", "extended-card", "v0.3")
"""What a server can be told to leave out, by the names that an operator gives."""


@dataclass(frozen=True)
class Offer:
    """What clients may use.

    Args:
        streaming: SendStreamingMessage and SubscribeToTask.
        push_notifications: Webhooks.
        extended_card: A card that says more, for whoever may see it.
        v0_3: Clients of protocol 0.3 are served on the same paths, and the card carries what they look for in it.
        grpc: Where gRPC is served, as `host:port`; empty where it is not.
    """

    streaming: bool = True
    push_notifications: bool = False
    extended_card: bool = False
    v0_3: bool = True
    grpc: str = ""


EVERYTHING: Final = Offer()
"""All that there is on HTTP."""
