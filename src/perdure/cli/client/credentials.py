"""Who this client is: the token in `PERDURE_TOKEN`, shown as the agent's card asks for it.

A card may name any address as the agent's. The token goes only to the one that its owner has typed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import httpx
from a2a.client.auth.credentials import CredentialService
from a2a.client.auth.interceptor import AuthInterceptor
from a2a.client.client import ClientCallContext
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import AgentCard

from perdure.core.errors import ConfigurationError

VARIABLE: Final = "PERDURE_TOKEN"


class _Token(CredentialService):
    """The same token, whatever the card calls its scheme."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_credentials(self, security_scheme_name: str, context: ClientCallContext | None) -> str | None:
        return self._token


def interceptors_for(url: str, card: AgentCard, environment: Mapping[str, str]) -> Sequence[ClientCallInterceptor]:
    """Return what shows the token with each request; nothing where there is none.

    Raises `ConfigurationError` where the card leads elsewhere, or the token fits into no header.
    """
    token = environment.get(VARIABLE, "").strip()
    if not token or not card.security_requirements:
        return ()
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(VARIABLE, "must be printable ASCII")
    for interface in card.supported_interfaces:
        if interface.protocol_binding != "GRPC" and _origin(interface.url) != _origin(url):
            raise ConfigurationError(
                VARIABLE,
                f"is for {url}, and the card there names another server, {interface.url}; give that as the URL if the "
                "token is meant for it",
            )
    return (AuthInterceptor(_Token(token)),)


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port
