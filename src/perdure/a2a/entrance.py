"""The way in, made from an app's settings: the gate before its server, and what the card says of it.

The card names each way to say who one is, any of which is enough. The extended card, for those who have come in, says
what the agent can do one by one: a skill for each of its tools, with its effect as a tag. The public one says only what
the agent is for: which tools somebody runs is not for everybody to know.
"""

from dataclasses import replace

from a2a.types.a2a_pb2 import AgentCard, AgentSkill, SecurityRequirement, StringList
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.a2a.gate import Gate
from perdure.a2a.identity import Authenticator
from perdure.a2a.keys import KeyAuthenticator
from perdure.a2a.porter import Rules
from perdure.a2a.signing import JWKS_PATH, CardKey
from perdure.a2a.tokens import TokenAuthenticator
from perdure.app.app import App
from perdure.app.offer import Offer
from perdure.core import limits


class Entrance:
    """How one comes in to an app that is served at `url`. Raises `ConfigurationError` for a key that cannot sign."""

    def __init__(self, app: App, url: str) -> None:
        entry = app.settings.entry
        ways: list[Authenticator] = []
        if entry.keys:
            ways.append(KeyAuthenticator(app.store))
        if entry.jwt is not None:
            ways.append(TokenAuthenticator(entry.jwt))
        self.rules = Rules(authenticators=tuple(ways), bounds=entry.limits)
        self._agent = app.agent
        self._url = url
        self._key = None if entry.card_key is None else CardKey(entry.card_key)

    def offered(self, offer: Offer) -> Offer:
        """Return what of it can be offered: a card for those who came in, only where one must say who one is."""
        return replace(offer, extended_card=offer.extended_card and bool(self.rules.authenticators))

    @property
    def gate(self) -> Middleware:
        """What stands before the server."""
        return Middleware(Gate, rules=self.rules, url=self._url)

    def public(self, card: AgentCard) -> AgentCard:
        """Return the card with what one must show, signed where there is a key."""
        for way in self.rules.authenticators:
            card.security_schemes[way.name].CopyFrom(way.scheme)
            # A role though none is needed: in an empty list the SDK's verifier and the specification differ.
            card.security_requirements.append(SecurityRequirement(schemes={way.name: StringList(list=way.roles)}))
        return card if self._key is None else self._key.signed(card, self._url)

    def extended(self, public: AgentCard) -> AgentCard | None:
        """Return what those who have come in are told, None where nobody can."""
        if not public.capabilities.extended_agent_card:
            return None
        card = AgentCard()
        card.CopyFrom(public)
        del card.signatures[:]
        for tool in self._agent.known_tools:
            spec, schema = tool.spec, tool.schema
            card.skills.append(
                AgentSkill(
                    id=f"{self._agent.id}/{spec.name}",
                    name=spec.name,
                    description=schema.description or f"Uses its tool {spec.name}.",
                    tags=["tool", spec.effect],
                )
            )
        return card if self._key is None else self._key.signed(card, self._url)

    @property
    def routes(self) -> list[Route]:
        """Where the key is that cards are signed with; nothing without one."""
        return [] if self._key is None else [Route(JWKS_PATH, self._answer_keys, methods=["GET"])]

    async def _answer_keys(self, request: Request) -> JSONResponse:
        keys = [] if self._key is None else [self._key.public]
        cache = f"public, max-age={limits.JWKS_FRESH_S:g}"
        return JSONResponse({"keys": keys}, headers={"Cache-Control": cache}, media_type="application/jwk-set+json")
