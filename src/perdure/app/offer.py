"""What a server offers of the protocol. The card says it and the operations keep to it (A2A 3.3.4)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

OPTIONAL: Final = ("streaming", "push", "extended-card", "v0.3")
"""What a server can be told to leave out, by the names that an operator gives."""


@dataclass(frozen=True)
class Offer:
    """What clients may use.

    Args:
        streaming: SendStreamingMessage and SubscribeToTask.
        push_notifications: Webhooks; needs a key that all servers over the store share (`PERDURE_SECRETS_KEY`).
        extended_card: A card that says more, for those who have said who they are; nobody can without authentication.
        v0_3: Clients of protocol 0.3 are served on the same paths, and the card carries what they look for in it.
        grpc: Where gRPC is served, as `host:port`; empty where it is not.
        requires: URIs of extensions that a client must name with every message; what they mean is the agent's.
    """

    streaming: bool = True
    push_notifications: bool = True
    extended_card: bool = True
    v0_3: bool = True
    grpc: str = ""
    requires: tuple[str, ...] = ()

    def without(self, left_out: Iterable[str]) -> "Offer":
        """Return the offer less what is named, by the names of `OPTIONAL`."""
        names = set(left_out)
        return replace(
            self,
            streaming=self.streaming and "streaming" not in names,
            push_notifications=self.push_notifications and "push" not in names,
            extended_card=self.extended_card and "extended-card" not in names,
            v0_3=self.v0_3 and "v0.3" not in names,
        )
