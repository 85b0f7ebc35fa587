"""Tokens for a server, as the SDK gets them: by client credentials, which need no person.

They are kept in memory. A worker that starts anew asks for a new one, so that nothing on disk opens the server.
"""

import httpx2
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


class _InMemory:
    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def provider(url: str, client_id: str, client_secret: str, issuer: str, scope: str | None) -> httpx2.Auth:
    """Return what signs requests to `url` with a token."""
    return ClientCredentialsOAuthProvider(
        server_url=url,
        storage=_InMemory(),
        client_id=client_id,
        client_secret=client_secret,
        scope=scope,
        issuer=issuer,
    )
