"""The shop behind OAuth: whoever has no token is told where to get one, and gets it for client credentials.

    python guarded_server.py FOLDER PORT

Files in the folder change what it is: `answer` is the status with which it turns everybody away, `revoked` makes it
forget its token, `broken` leaves it without another one, and `hold` lets a call wait until the file is gone.
"""

import asyncio
import contextlib
import json
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

FOLDER, PORT = Path(sys.argv[1]), int(sys.argv[2])
BASE = f"http://127.0.0.1:{PORT}"
TOKEN = "token-of-the-shop"
CREDENTIALS = "Basic " + b64encode(b"perdure:its-secret").decode()

server = MCPServer("guarded")


@server.tool()
async def hello() -> str:
    """Say hello."""
    with (FOLDER / "reached").open("a") as file:
        file.write(json.dumps({"at": "hello"}) + "\n")
    while (FOLDER / "hold").exists():  # noqa: ASYNC110 - a file is all that a test has to say
        await asyncio.sleep(0.02)
    return "hello"


async def resource(_request: Request) -> Response:
    return JSONResponse({"resource": f"{BASE}/mcp", "authorization_servers": [BASE]})


async def issuer(_request: Request) -> Response:
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": f"{BASE}/authorize",
            "token_endpoint": f"{BASE}/token",
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
    )


async def token(request: Request) -> Response:
    form = dict(await request.form())
    with (FOLDER / "tokens").open("a") as file:
        file.write(json.dumps({"grant": form.get("grant_type"), "scope": form.get("scope")}) + "\n")
    if (FOLDER / "broken").exists():
        return JSONResponse({"error": "server_error"}, 500)
    if request.headers.get("authorization") != CREDENTIALS:
        return JSONResponse({"error": "invalid_client"}, 401)
    return JSONResponse({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})


def guarded(inner: Any) -> Any:
    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if (FOLDER / "answer").exists():
            await Response(status_code=int((FOLDER / "answer").read_text()))(scope, receive, send)
            return
        known = dict(scope["headers"]).get(b"authorization") == f"Bearer {TOKEN}".encode()
        if scope["type"] != "http" or (known and not (FOLDER / "revoked").exists()):
            await inner(scope, receive, send)
            return
        where = f'Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource"'
        await Response(status_code=401, headers={"WWW-Authenticate": where})(scope, receive, send)

    return guard


shop = server.streamable_http_app()


@contextlib.asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with shop.router.lifespan_context(shop):
        yield


app = Starlette(
    routes=[
        Route("/.well-known/oauth-protected-resource", resource),
        Route("/.well-known/oauth-protected-resource/mcp", resource),
        Route("/.well-known/oauth-authorization-server", issuer),
        Route("/token", token, methods=["POST"]),
        Mount("/", guarded(shop)),
    ],
    lifespan=lifespan,
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
