"""The SDK's ways to come by a token, as the kit's scenarios want them. Nobody is asked: the kit's pages redirect."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.mcp_conformance.driver import Situation

BACK: Final = AnyUrl("http://localhost:3000/callback")
"""Nothing listens there; the redirect to it is read and not followed."""

ABOUT: Final = "https://conformance-test.local/client-metadata.json"
"""The name by which the kit's servers know a client that describes itself at a URL."""

TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:"


class InMemory:
    """Keeps tokens while the process lives."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._tokens: OAuthToken | None = None
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def signing(given: Situation) -> httpx2.Auth | None:
    """Return what signs this scenario's requests; None where it is about something else."""
    if not given.scenario.startswith("auth/"):
        return None
    match given.scenario:
        case "auth/client-credentials-basic":
            return ClientCredentialsOAuthProvider(
                given.url, InMemory(), given.context["client_id"], given.context["client_secret"]
            )
        case "auth/client-credentials-jwt":
            named = given.context["client_id"]
            proof = SignedJWTParameters(
                issuer=named,
                subject=named,
                signing_algorithm=given.context.get("signing_algorithm", "ES256"),
                signing_key=given.context["private_key_pem"],
            )
            return PrivateKeyJWTOAuthProvider(given.url, InMemory(), named, proof.create_assertion_provider())
        case "auth/enterprise-managed-authorization":
            return await _enterprise(given)
        case _:
            return _by_code(given)


def _by_code(given: Situation) -> httpx2.Auth:
    """The flow with a person at a browser, whose page is asked for here and says yes at once."""
    came_back: list[str] = []

    async def visit(url: str) -> None:
        async with httpx2.AsyncClient() as http:
            answer = await http.get(url, follow_redirects=False)
        came_back.append(answer.headers["location"])

    async def code() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(came_back.pop()).query)
        state, issuer = query.get("state"), query.get("iss")
        return AuthorizationCodeResult(
            code=query["code"][0], state=state[0] if state else None, iss=issuer[0] if issuer else None
        )

    named, secret = given.context.get("client_id"), given.context.get("client_secret")
    known = None
    if named:
        known = OAuthClientInformationFull(
            client_id=named,
            client_secret=secret,
            redirect_uris=[BACK],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    asked = OAuthClientMetadata(
        client_name="perdure-conformance",
        redirect_uris=[BACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(given.url, asked, InMemory(known), visit, code, ABOUT)


async def _enterprise(given: Situation) -> httpx2.Auth:
    """An identity provider's word for the user is exchanged for one that the server's own issuer takes."""
    of = given.context
    (where, *_) = build_protected_resource_metadata_discovery_urls(None, given.url)
    async with httpx2.AsyncClient() as http:
        issuer = (await http.get(where)).raise_for_status().json()["authorization_servers"][0]

    async def assertion(audience: str, resource: str) -> str:
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": f"{TOKEN_TYPE}id-jag",
            "subject_token": of["idp_id_token"],
            "subject_token_type": f"{TOKEN_TYPE}id_token",
            "audience": audience,
            "resource": resource,
            "client_id": of["idp_client_id"],
        }
        async with httpx2.AsyncClient() as http:
            answer = (await http.post(of["idp_token_endpoint"], data=form)).raise_for_status()
        token: str = answer.json()["access_token"]
        return token

    return IdentityAssertionOAuthProvider(
        server_url=given.url,
        storage=InMemory(),
        client_id=of["client_id"],
        client_secret=of["client_secret"],
        issuer=issuer,
        assertion_provider=assertion,
        token_endpoint_auth_method="client_secret_basic",
    )
