"""The gate: every HTTP request is looked at here, before anything of it reaches the store or Temporal.

    a place → who calls → how often → the body → its shape → a place for a stream → the front door

The cheapest comes first, and no body is read for a caller who does not come in. A refusal is an answer in the form of
the binding, names what was wrong and what to do, and changes nothing.

The gate sets the request's `user`; the tasks that the front door shows are those of that name. Where callers need not
say who they are, a user that came with the request (from middleware further out) stands, and everybody else is nobody.
Such a door is for this machine alone, and for its programs: a page of another site, which a browser on this machine
shows, is refused by what the browser says of it, also when that site's name points here.

A request that stays open is looked at again every CREDENTIAL_RECHECK_S: when its credential is no more, it ends as if
its client had left. A stream then ends in order, and goes on from its last number with a credential that is good.
"""

import contextlib
import json
import logging
from typing import Final
from urllib.parse import urlsplit

from starlette.authentication import SimpleUser
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.a2a.bodies import check_shape, read_body
from perdure.a2a.errors import RETRY_AFTER_S, ServiceUnavailableError
from perdure.a2a.exchange import Answer, Inner
from perdure.a2a.identity import Credential
from perdure.a2a.pieces import StalledError
from perdure.a2a.porter import Porter, Rules
from perdure.a2a.refusals import MalformedError, PermissionDeniedError, RefusedError
from perdure.app.entry import is_loopback
from perdure.core.errors import Unavailable

logger = logging.getLogger(__name__)

STREAMING: Final = frozenset({"SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"})
PUBLIC: Final = "/.well-known/"
"""What anybody may read: the card, and the key that it is signed with."""


class Gate:
    """ASGI middleware that lets requests in, or answers why not. `url` is how clients reach the server."""

    def __init__(self, app: ASGIApp, rules: Rules, url: str) -> None:
        self._app = app
        self._rules = rules
        self._porter = Porter(rules)
        self._own_host = _host(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = Answer(scope, send)
        try:
            with contextlib.ExitStack() as held:
                await self._let_in(scope, receive, answer, held)
        except ClientDisconnect:
            return
        except StalledError as error:
            logger.warning("a client at %s was cut off from its answer: it %s", _peer(scope), error)
        except RefusedError as error:
            await answer.refuse(error)
        except Unavailable as error:
            unavailable = ServiceUnavailableError(message=str(error))
            await answer.refuse(unavailable, {"Retry-After": str(RETRY_AFTER_S)})

    async def _let_in(self, scope: Scope, receive: Receive, answer: Answer, held: contextlib.ExitStack) -> None:
        headers = Headers(scope=scope)
        self._porter.some_request(held)
        if answer.path.startswith(PUBLIC):
            self._refuse_other_sites(scope, headers)
            await self._app(scope, receive, answer.send)
            return
        credential, name = await self._caller(scope, headers)
        self._porter.refuse_too_often(name)
        self._porter.own_request(held, name)
        body = await read_body(headers, receive, self._rules.bounds.request_bytes_max)
        check_shape(body)
        if _asks_for_stream(answer, body):
            self._porter.stream(held, name)
        inner = Inner(body, receive, answer, credential, self._rules.bounds.credential_recheck_s)
        await self._app({**scope, "user": SimpleUser(name)} if name else scope, inner.receive, answer.send)
        await answer.end()

    async def _caller(self, scope: Scope, headers: Headers) -> tuple[Credential | None, str]:
        """Return what the caller showed and who that is; an empty name is nobody."""
        if self._rules.authenticators:
            return await self._porter.caller(headers, _peer(scope))
        self._refuse_other_sites(scope, headers)
        return None, _user(scope)

    def _refuse_other_sites(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a page of another site makes a browser send, where this machine's programs need not say who."""
        if self._rules.authenticators or _user(scope):
            return
        for field, url in (("Host", f"//{headers.get('Host', '')}"), ("Origin", headers.get("Origin"))):
            if url is not None and not self._is_own(url):
                raise PermissionDeniedError(
                    f"{field}: {url.removeprefix('//')!r} is not this server; without authentication it is for "
                    "programs on its own machine, which name it as its card does"
                )

    def _is_own(self, url: str) -> bool:
        host = _host(url)
        return host == self._own_host or is_loopback(host)


def _asks_for_stream(answer: Answer, body: bytes) -> bool:
    if not answer.json_rpc:
        return answer.path.endswith((":stream", ":subscribe"))
    try:
        asked = json.loads(body)
    except json.JSONDecodeError:
        return False  # the binding says so
    except ValueError as error:
        raise MalformedError(f"body: cannot be read ({error}); send numbers that are shorter") from error
    if not isinstance(asked, dict):
        return False
    request_id = asked.get("id")
    if isinstance(request_id, str | int) and not isinstance(request_id, bool):
        answer.request_id = request_id
    return asked.get("method") in STREAMING


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("an unknown address",))[0])


def _user(scope: Scope) -> str:
    user = scope.get("user")
    return str(user.display_name) if user is not None and user.is_authenticated else ""
