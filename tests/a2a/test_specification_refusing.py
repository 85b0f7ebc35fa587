"""A2A 1.0, one row a test: how errors look, versions, the card, and what this server says that it does not offer."""

import json
from typing import Any, Final

import grpc
import httpx
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2, a2a_v0_3_pb2_grpc

from tests.a2a.bindings import Refused, url_of
from tests.a2a.specified import Ask, Served, sending

pytestmark = pytest.mark.slow

OPTIONS: Final = ("--off", "streaming", "--off", "push", "--off", "extended-card")

CODES: Final[dict[str, tuple[int, int, str]]] = {
    "TASK_NOT_FOUND": (-32001, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": (-32002, 400, "FAILED_PRECONDITION"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": (-32004, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, 400, "INVALID_ARGUMENT"),
    "VERSION_NOT_SUPPORTED": (-32009, 400, "FAILED_PRECONDITION"),
    "INVALID_PARAMS": (-32602, 400, "INVALID_ARGUMENT"),
}
"""5.4 as of 1.0.1: JSON-RPC, HTTP, gRPC. 1.0.0 had other statuses for some."""


def codes(ask: Ask, refused: Refused) -> None:
    """Check that the binding's code is the one that the table has for the reason."""
    assert refused.code == CODES[refused.reason][("jsonrpc", "http", "grpc").index(ask.name)], refused


@pytest.mark.parametrize("reason", sorted(CODES))
def test_every_error_has_its_code_in_every_binding(ask: Ask, reason: str) -> None:
    """5.4, 9.5, 10.6, 11.6: the code of the binding, and an ErrorInfo with the reason and A2A's domain."""
    strange = sending(parts=[{"raw": "eA==", "mediaType": "application/x-strange"}])
    config = {"taskId": "t-1", "id": "p-1", "url": "https://example.org/"}
    match reason:
        case "TASK_NOT_FOUND":
            refused = ask.refused("GetTask", {"id": "t-none"})
        case "TASK_NOT_CANCELABLE":
            refused = ask.refused("CancelTask", {"id": ask.send()["id"]})
        case "PUSH_NOTIFICATION_NOT_SUPPORTED":
            refused = ask.refused("CreateTaskPushNotificationConfig", config)
        case "UNSUPPORTED_OPERATION":
            refused = ask.refused("SendMessage", sending(taskId=ask.send()["id"]))
        case "CONTENT_TYPE_NOT_SUPPORTED":
            refused = ask.refused("SendMessage", strange)
        case "VERSION_NOT_SUPPORTED":
            refused = ask.refused("GetTask", {"id": "t-none"}, A2A_Version="1.7")
        case _:
            refused = ask.refused("ListTasks", {"pageSize": 0})
    assert refused.reason == reason
    codes(ask, refused)


# --- what is not offered ------------------------------------------------------------------------------------------


def test_streams_that_are_not_offered_are_refused(ask: Ask) -> None:
    """3.3.4: UnsupportedOperationError, and no message is taken in."""
    message = sending(contextId=f"c-stream-{ask.name}")
    assert ask.refused("SendStreamingMessage", message).reason == "UNSUPPORTED_OPERATION"
    assert ask.refused("SubscribeToTask", {"id": ask.send("ask")["id"]}).reason == "UNSUPPORTED_OPERATION"
    assert ask.call("ListTasks", {"contextId": f"c-stream-{ask.name}"}).get("totalSize", 0) == 0


def test_pushes_that_are_not_offered_are_refused(ask: Ask) -> None:
    """3.3.4: PushNotificationNotSupportedError, also for a configuration that comes with a message."""
    config = {"taskId": "t-1", "id": "p-1", "url": "https://example.org/"}
    assert ask.refused("CreateTaskPushNotificationConfig", config).reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    given = sending(contextId=f"c-push-{ask.name}")
    given["configuration"]["taskPushNotificationConfig"] = {"url": "https://example.org/"}
    assert ask.refused("SendMessage", given).reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert ask.call("ListTasks", {"contextId": f"c-push-{ask.name}"}).get("totalSize", 0) == 0


def test_an_extended_card_that_is_not_offered_is_refused(ask: Ask) -> None:
    """3.1.11, 3.3.4: UnsupportedOperationError."""
    assert ask.refused("GetExtendedAgentCard", {}).reason == "UNSUPPORTED_OPERATION"


def test_the_card_claims_nothing_that_is_not_offered(served: Served) -> None:
    """4.4.3: the capabilities are what the operations do."""
    capabilities = served.card["capabilities"]
    for name in ("streaming", "pushNotifications", "extendedAgentCard"):
        assert not capabilities.get(name)


# --- versions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.7", "2.0", "0.2", "x"])
def test_a_version_that_is_not_served_is_refused(ask: Ask, version: str) -> None:
    """3.6.2: VersionNotSupportedError."""
    assert ask.refused("ListTasks", {}, A2A_Version=version).reason == "VERSION_NOT_SUPPORTED"


def test_a_patch_number_says_nothing(ask: Ask) -> None:
    """3.6: patch numbers are not considered."""
    assert ask.send()["id"]
    assert "tasks" in ask.call("ListTasks", {}, A2A_Version="1.0.9")


@pytest.mark.parametrize(("version", "status"), [("1.0", 200), ("1.7", 400)])
def test_the_version_may_be_in_the_query(served: Served, version: str, status: int) -> None:
    """3.6.1: a request parameter in place of the header."""
    with httpx.Client(base_url=served.house.url, timeout=30) as client:
        assert client.get("/tasks", params={"A2A-Version": version}).status_code == status


def test_no_version_is_0_3(served: Served) -> None:
    """3.6.2: an empty value is 0.3: its methods are there, and those of 1.0 are not."""
    old = {"kind": "message", "messageId": "m-old", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
    with httpx.Client(base_url=served.house.url, timeout=30, headers={"A2A-Version": ""}) as client:
        sent = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": old}}
        assert client.post("/", json=sent).json()["result"]["status"]["state"] == "completed"
        asked = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        assert client.post("/", json=asked).json()["error"]["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"


def test_no_version_is_0_3_on_grpc_too(served: Served) -> None:
    """3.6.2, 10: the same port has 0.3's service."""
    message = a2a_v0_3_pb2.Message(message_id="m-old", role=a2a_v0_3_pb2.ROLE_USER)
    message.content.add(text="hi")
    with grpc.insecure_channel(url_of(served.card, "GRPC")) as channel:
        stub: Any = a2a_v0_3_pb2_grpc.A2AServiceStub
        answer = stub(channel).SendMessage(a2a_v0_3_pb2.SendMessageRequest(request=message), timeout=30)
    assert answer.task.status.state == a2a_v0_3_pb2.TASK_STATE_COMPLETED


# --- bodies and the card ------------------------------------------------------------------------------------------


def test_a_body_that_is_no_json_is_refused(served: Served) -> None:
    """9.1, 11.1: by its type, before anything is read; so that no page in a browser can send one unasked."""
    headers = {"Content-Type": "text/plain"}
    rpc = served.house.client.post("/", content=b"{}", headers=headers).json()["error"]
    assert (rpc["code"], rpc["data"][0]["reason"]) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
    rest = served.house.client.post("/message:send", content=b"{}", headers=headers)
    assert (rest.status_code, rest.json()["error"]["details"][0]["reason"]) == (415, "CONTENT_TYPE_NOT_SUPPORTED")


@pytest.mark.parametrize(
    ("sent", "accepted", "answered"),
    [
        ("application/a2a+json", "*/*", "application/a2a+json"),
        ("application/json", "*/*", "application/json"),
        ("application/json", "application/a2a+json", "application/a2a+json"),
    ],
)
def test_the_answer_is_of_the_media_type_that_the_client_speaks(
    served: Served, sent: str, accepted: str, answered: str
) -> None:
    """11.1: `application/a2a+json` should be used; a client of 1.0.0, which had `application/json`, gets that."""
    headers = {"Content-Type": sent, "Accept": accepted}
    answer = served.house.client.post("/message:send", content=json.dumps(sending()), headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, answered)


def test_a_body_that_is_broken_is_refused(served: Served) -> None:
    """9.5: a parse error, an invalid request, a method that there is not."""
    post = served.house.client.post
    headers = {"Content-Type": "application/json"}
    assert post("/", content=b"{", headers=headers).json()["error"]["code"] == -32700
    assert post("/", json={"jsonrpc": "1.0", "id": 1, "method": "GetTask"}).json()["error"]["code"] == -32600
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "Nothing", "params": {}}
    assert post("/", json=unknown).json()["error"]["code"] == -32601
    assert post("/message:send", content=b"{", headers=headers).status_code == 400


def test_the_card_is_public_and_may_be_kept(served: Served) -> None:
    """8.2, 8.6.1: at its well-known place, with max-age, ETag and Last-Modified; unchanged it is a 304."""
    with httpx.Client(base_url=served.house.url, timeout=30) as client:
        answer = client.get("/.well-known/agent-card.json")
        assert "max-age=" in answer.headers["Cache-Control"]
        assert answer.headers["Last-Modified"].endswith("GMT")
        same = client.get("/.well-known/agent-card.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_paths_are_appended_to_the_cards_url(served: Served) -> None:
    """8.3.1, 11.3: the URL of HTTP+JSON is what every path is put behind."""
    url = url_of(served.card, "HTTP+JSON")
    assert httpx.get(f"{url}/tasks", headers={"A2A-Version": "1.0"}).status_code == 200
