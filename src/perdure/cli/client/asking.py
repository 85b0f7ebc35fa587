"""Operations of our extension, asked of a server that its card says has them; the SDK's client knows only A2A's own.

One request, one answer, by JSON-RPC, which every server with the extension speaks. Errors become A2A's by their code,
and are then sorted like all others.
"""

from collections.abc import Sequence
from typing import Any, Final

import httpx
from a2a.client.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.client.interceptors import BeforeArgs, ClientCallInterceptor
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.constants import PROTOCOL_VERSION_1_0, VERSION_HEADER, TransportProtocol
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, A2AError
from google.protobuf.json_format import MessageToDict

from perdure.a2a import extension
from perdure.cli.client.refusals import sorted_errors
from perdure.core import client_limits
from perdure.core.errors import InvalidInput

Json = dict[str, Any]

_KINDS: Final = {code: kind for kind, code in JSON_RPC_ERROR_CODE_MAP.items()}


class Extended:
    """One server's operations of the extension. `shown` put the caller's token on each request."""

    def __init__(
        self, url: str, card: AgentCard, http: httpx.AsyncClient, shown: Sequence[ClientCallInterceptor]
    ) -> None:
        self._url = url
        self._card = card
        self._http = http
        self._shown = shown

    async def ask(self, name: str, context: ClientCallContext, **params: str) -> Json:
        """Return the operation's result. Raises `InvalidInput` where the server has no such operation."""
        if name not in _offered(self._card):
            raise InvalidInput(
                "URL",
                f"the agent at {self._url} has no {name.removeprefix(extension.PREFIX)}; agents that `perdure serve` "
                "serves have it",
            )
        for each in self._shown:
            await each.before(BeforeArgs(input=None, method=name, agent_card=self._card, context=context))
        headers = {**(context.service_parameters or {}), VERSION_HEADER: PROTOCOL_VERSION_1_0}
        body = {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}
        with sorted_errors():
            answer = await self._http.post(self._place(), json=body, headers=headers, timeout=client_limits.ANSWER_S)
            return _result(answer)

    def _place(self) -> str:
        for each in self._card.supported_interfaces:
            if each.protocol_binding == TransportProtocol.JSONRPC:
                return str(each.url)
        raise InvalidInput("URL", f"the agent at {self._url} does not speak JSON-RPC, which this needs")


def _offered(card: AgentCard) -> set[str]:
    """Return the operations that a card names beside our extension."""
    found: set[str] = set()
    for each in card.capabilities.extensions:
        if each.uri == extension.URI:
            listed = MessageToDict(each.params).get("operations", [])
            found |= {str(one["method"]) for one in listed if isinstance(one, dict) and "method" in one}
    return found


def _result(answer: httpx.Response) -> Json:
    try:
        answer.raise_for_status()
        said = answer.json()
    except httpx.HTTPStatusError as error:
        raise A2AClientError(f"HTTP {answer.status_code}") from error
    except ValueError as error:
        raise A2AClientError(str(error)) from error
    if isinstance(said, dict) and isinstance(said.get("result"), dict):
        result: Json = said["result"]
        return result
    if not isinstance(said, dict) or not isinstance(said.get("error"), dict):
        raise A2AClientError("it has neither a result nor an error")
    raise _error(said["error"])


def _error(said: Json) -> A2AError:
    details = said.get("data")
    details = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    info: Json = next((each for each in details if "reason" in each), {})
    kind = _KINDS.get(said.get("code", 0), A2AClientError)
    return kind(message=str(said.get("message", "")), data=info.get("metadata"))
