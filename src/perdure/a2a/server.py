"""The front door as an ASGI application.

    card at /.well-known/agent-card.json · JSON-RPC at POST / · HTTP+JSON at /message:send, /tasks, …

0.3 clients are served on the same paths through the SDK's compatibility layer. Who may come in is decided at the gate
(`gate.py`), by the app's settings; where they ask for nothing, middleware around the application may set the request's
user. Without either everybody is nobody, which is for loopback only.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from starlette.applications import Starlette
from starlette.middleware import Middleware

from perdure.a2a.caller import CallerContextBuilder, versions_of
from perdure.a2a.card import agent_card
from perdure.a2a.entrance import Entrance
from perdure.a2a.handler import FrontDoor
from perdure.a2a.lanes import Lanes
from perdure.a2a.lanes_http import with_lanes
from perdure.a2a.push import pushing
from perdure.a2a.wire import dated, framed
from perdure.app.app import App
from perdure.app.clock import now_ms
from perdure.app.offer import Offer

CARD_CACHE: Final = "public, max-age=60"
"""A card changes with a deployment; a minute spares the flood and delays nobody."""


def asgi(app: App, url: str, *, middleware: Sequence[Middleware] = (), offer: Offer | None = None) -> Starlette:
    """Return the application that serves the app's agent.

    Args:
        app: An open app; it must stay open as long as this serves.
        url: Where clients reach it, as the card says it.
        middleware: Goes around everything, the gate too, the first outermost.
        offer: What of the protocol is offered; None for all that there is on HTTP.
    """
    offer, entrance = offer or Offer(), Entrance(app, url)
    pushes = pushing(app) if offer.push_notifications else None
    offer = replace(entrance.offered(offer), push_notifications=pushes is not None)
    card = entrance.public(agent_card(app.agent, url, offer))
    door = FrontDoor(app, card, pushes, entrance.extended(card))
    builder = CallerContextBuilder(versions_of(offer))
    return Starlette(
        routes=[
            *entrance.routes,
            *dated(create_agent_card_routes(card, cache_control=CARD_CACHE), now_ms()),
            *framed(
                with_lanes(
                    create_jsonrpc_routes(door, "/", builder, enable_v0_3_compat=offer.v0_3), Lanes(app), builder
                )
            ),
            *framed(create_rest_routes(door, builder, enable_v0_3_compat=offer.v0_3)),
        ],
        middleware=[*middleware, entrance.gate],
    )
