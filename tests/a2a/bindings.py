"""The three bindings as one client, so that a row of the specification is one test on all of them (A2A 5.1, 5.3)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import grpc
import httpx
from a2a.types import a2a_pb2, a2a_pb2_grpc
from a2a.utils.grpc_status import status_from_call
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo

from tests.a2a.house import V1, Json

WAIT_S: Final = 45.0

REQUESTS: Final[dict[str, Any]] = {
    "SendMessage": a2a_pb2.SendMessageRequest,
    "SendStreamingMessage": a2a_pb2.SendMessageRequest,
    "GetTask": a2a_pb2.GetTaskRequest,
    "ListTasks": a2a_pb2.ListTasksRequest,
    "CancelTask": a2a_pb2.CancelTaskRequest,
    "SubscribeToTask": a2a_pb2.SubscribeToTaskRequest,
    "CreateTaskPushNotificationConfig": a2a_pb2.TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": a2a_pb2.GetTaskPushNotificationConfigRequest,
    "ListTaskPushNotificationConfigs": a2a_pb2.ListTaskPushNotificationConfigsRequest,
    "DeleteTaskPushNotificationConfig": a2a_pb2.DeleteTaskPushNotificationConfigRequest,
    "GetExtendedAgentCard": a2a_pb2.GetExtendedAgentCardRequest,
}

PATHS: Final = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}


class Refused(Exception):
    """An operation was refused: the reason, the binding's own code, and the fields that were named."""

    def __init__(self, reason: str, code: int | str, fields: Iterable[str] = ()) -> None:
        super().__init__(f"{reason} ({code})")
        self.reason, self.code, self.fields = reason, code, tuple(fields)


class Binding(Protocol):
    """One way to ask."""

    def call(self, method: str, params: Json, **headers: str) -> Json:
        """Return the answer's JSON; raises `Refused`."""
        ...

    def stream(self, method: str, params: Json, **headers: str) -> Iterator[Json]:
        """Yield the events; raises `Refused`, at the latest with the first."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def _of_details(details: list[Json], code: int) -> Refused:
    (info,) = [each for each in details if each["@type"].endswith("google.rpc.ErrorInfo")]
    assert info["domain"] == "a2a-protocol.org"
    broken = [each for each in details if each["@type"].endswith("google.rpc.BadRequest")]
    return Refused(info["reason"], code, [one["field"] for each in broken for one in each["fieldViolations"]])


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {**V1, **{name.replace("_", "-"): value for name, value in headers.items()}}


def _events(response: httpx.Response) -> Iterator[Json]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


class JsonRpc:
    """JSON-RPC (A2A 9)."""

    def __init__(self, card: Json, wait_s: float = WAIT_S) -> None:
        self._http = httpx.Client(base_url=url_of(card, "JSONRPC"), timeout=wait_s)

    def call(self, method: str, params: Json, **headers: str) -> Json:
        answer: Json = self._http.post("", json=_body(method, params), headers=_named(headers)).json()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
        return _result(answer)

    def stream(self, method: str, params: Json, **headers: str) -> Iterator[Json]:
        with self._http.stream("POST", "", json=_body(method, params), headers=_named(headers)) as response:
            if not response.headers["content-type"].startswith("text/event-stream"):
                response.read()
                _result(response.json())
            for event in _events(response):
                yield _result(event)

    def close(self) -> None:
        self._http.close()


def _body(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def _result(answer: Json) -> Json:
    if "error" in answer:
        raise _of_details(answer["error"].get("data", []), answer["error"]["code"])
    result: Json = answer["result"]
    return result


class HttpJson:
    """HTTP+JSON (A2A 11)."""

    def __init__(self, card: Json, wait_s: float = WAIT_S) -> None:
        self._http = httpx.Client(base_url=url_of(card, "HTTP+JSON"), timeout=wait_s)

    def call(self, method: str, params: Json, **headers: str) -> Json:
        answer = self._http.send(self._request(method, params, headers))
        return self._answer(answer)

    def stream(self, method: str, params: Json, **headers: str) -> Iterator[Json]:
        response = self._http.send(self._request(method, params, headers), stream=True)
        try:
            if not response.headers["content-type"].startswith("text/event-stream"):
                response.read()
                self._answer(response)
            yield from _events(response)
        finally:
            response.close()

    def _request(self, method: str, params: Json, headers: dict[str, str]) -> httpx.Request:
        verb, path = PATHS[method]
        inside = {name: params[name] for name in ("id", "taskId") if f"{{{name}}}" in path}
        rest = {name: value for name, value in params.items() if name not in inside}
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in rest.items()}
        return self._http.build_request(
            verb,
            path.format(**inside),
            params=query if verb == "GET" else None,
            json=rest if verb == "POST" else None,
            headers=_named(headers),
        )

    def _answer(self, response: httpx.Response) -> Json:
        body: Json = response.json()
        if response.status_code >= 400:
            assert body["error"]["code"] == response.status_code
            raise _of_details(body["error"]["details"], response.status_code)
        return body

    def close(self) -> None:
        self._http.close()


class Grpc:
    """gRPC (A2A 10)."""

    def __init__(self, card: Json, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._channel = grpc.insecure_channel(url_of(card, "GRPC"))
        stub: Any = a2a_pb2_grpc.A2AServiceStub
        self._stub = stub(self._channel)

    def call(self, method: str, params: Json, **headers: str) -> Json:
        try:
            answer = getattr(self._stub, method)(*self._given(method, params), **self._around(headers))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            raise _of_status(error) from error
        return MessageToDict(answer)

    def stream(self, method: str, params: Json, **headers: str) -> Iterator[Json]:
        try:
            for event in getattr(self._stub, method)(*self._given(method, params), **self._around(headers)):
                yield MessageToDict(event)
        except grpc.RpcError as error:
            raise _of_status(error) from error

    def _given(self, method: str, params: Json) -> tuple[Any]:
        return (ParseDict(params, REQUESTS[method]()),)

    def _around(self, headers: dict[str, str]) -> Json:
        metadata = [(name.lower(), value) for name, value in _named(headers).items() if value]
        return {"metadata": metadata, "timeout": self._wait_s}

    def close(self) -> None:
        self._channel.close()


def _of_status(error: Any) -> Refused:
    status = status_from_call(error)
    assert status is not None, error
    info, broken = ErrorInfo(), BadRequest()
    for detail in status.details:
        _ = detail.Unpack(info) if detail.Is(ErrorInfo.DESCRIPTOR) else detail.Unpack(broken)
    assert info.domain == "a2a-protocol.org"
    return Refused(info.reason, error.code().name, [each.field for each in broken.field_violations])


def url_of(card: Json, binding: str) -> str:
    """Return where the card says that the binding is."""
    found = [
        each["url"]
        for each in card["supportedInterfaces"]
        if (each["protocolBinding"], each["protocolVersion"]) == (binding, "1.0")
    ]
    url: str = found[0]
    return url


BINDINGS: Final[dict[str, Any]] = {"jsonrpc": JsonRpc, "http": HttpJson, "grpc": Grpc}
