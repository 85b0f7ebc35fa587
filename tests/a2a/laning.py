"""One app before its lanes on every binding, in this process: by a key where its door is locked."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

import grpc
import grpc.aio
import httpx
from a2a.utils.grpc_status import GRPC_STATUS_DETAILS_BIN_KEY
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from perdure import App
from perdure.a2a import extension
from perdure.a2a.rpc import GrpcDoor
from perdure.app.offer import Offer
from tests.a2a.desk import URL, Json

BINDINGS: Final = ("jsonrpc", "http", "grpc")


class Refused(Exception):
    """What a call was refused with: the reason, and the fields that were named."""

    def __init__(self, details: list[Json]) -> None:
        (info,) = [each for each in details if each["@type"].endswith("google.rpc.ErrorInfo")]
        broken = [each for each in details if each["@type"].endswith("google.rpc.BadRequest")]
        super().__init__(str(info["reason"]))
        self.reason = str(info["reason"])
        self.code = str(info.get("metadata", {}).get("code", ""))
        self.fields = [one["field"] for each in broken for one in each["fieldViolations"]]


class Asking:
    """Asks for operations of the extension on one binding, and for everything else by JSON-RPC."""

    def __init__(self, binding: str, http: httpx.AsyncClient, channel: Any) -> None:
        self.binding = binding
        self.http = http
        self._channel = channel

    async def __call__(self, name: str, key: str = "", **params: str) -> Json:
        """Return the operation's result; raises `Refused`."""
        match self.binding:
            case "jsonrpc":
                return await self.rpc(name, params, key)
            case "http":
                return await self._path(name, params, key)
            case _:
                return await self._rpc(name, params, key)

    async def rpc(self, method: str, params: Json, key: str = "") -> Json:
        body = {"jsonrpc": "2.0", "id": "one", "method": method, "params": params}
        headers = {"Content-Type": "application/json", **_shown(key)}
        answer = (
            await self.http.post("/", content=json.dumps(body), headers=headers)
        ).json()  # in ASCII: says any text
        if "error" in answer:
            raise Refused(answer["error"]["data"])
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", "one")
        result: Json = answer["result"]
        return result

    async def _path(self, name: str, params: Json, key: str) -> Json:
        verb, path = extension.PATHS[name]
        inside = {field: quote(params.get(field, ""), safe="") for field in ("id", "messageId")}
        answer = await self.http.request(verb, path.format(**inside), headers=_shown(key))
        body: Json = answer.json()
        if answer.status_code >= 400:
            assert body["error"]["code"] == answer.status_code
            raise Refused(body["error"]["details"])
        return body

    async def _rpc(self, name: str, params: Json, key: str) -> Json:
        method = self._channel.unary_unary(
            f"/{extension.SERVICE}/{name.removeprefix(extension.PREFIX)}",
            request_serializer=Struct.SerializeToString,
            response_deserializer=Struct.FromString,
        )
        metadata = [(field.lower(), value) for field, value in {"A2A-Version": "1.0", **_shown(key)}.items()]
        try:
            found: Json = MessageToDict(await method(ParseDict(params, Struct()), metadata=metadata, timeout=20))
        except grpc.aio.AioRpcError as error:
            raise Refused(_details(error)) from error
        return found


def _shown(key: str) -> dict[str, str]:
    return {"X-API-Key": key} if key else {}


def _details(error: grpc.aio.AioRpcError) -> list[Json]:
    status = Status()
    status.ParseFromString(dict(error.trailing_metadata() or ())[GRPC_STATUS_DETAILS_BIN_KEY])
    found = []
    for detail in status.details:
        for kind in (ErrorInfo, BadRequest):
            if detail.Is(kind.DESCRIPTOR):
                unpacked = kind()
                detail.Unpack(unpacked)
                fields = MessageToDict(unpacked)
                found.append({"@type": kind.DESCRIPTOR.full_name, **fields})
    return found


@contextlib.asynccontextmanager
async def asking(app: App, binding: str) -> AsyncIterator[Asking]:
    """Serve the app on every binding; give what asks on this one."""
    served = GrpcDoor("127.0.0.1", 0)
    offer = Offer(grpc=served.address)
    await served.open(app, URL, offer)
    transport = httpx.ASGITransport(app.asgi(URL, offer=offer))
    try:
        async with (
            httpx.AsyncClient(transport=transport, base_url=URL, headers={"A2A-Version": "1.0"}, timeout=30) as http,
            grpc.aio.insecure_channel(served.address) as channel,
        ):
            yield Asking(binding, http, channel)
    finally:
        await served.close(0)
