"""What a gRPC call costs before it is known whose it is: metadata, and nothing of its message."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import ListValue, Value

from perdure import App
from perdure.a2a.refusals import MalformedError
from perdure.a2a.rpc import GrpcDoor
from perdure.a2a.rpc_bodies import check_wire
from perdure.a2a.rpc_gate import host_of
from perdure.app.entry import EntrySettings
from perdure.app.offer import Offer
from perdure.core import door_limits, limits
from tests.a2a.desk import URL, Json, sending
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEYS = entry(AUTH="keys")
UNKNOWN = f"perdure_{'0' * 12}_{'0' * 64}"
NO_MESSAGE = b"\xff\xff\xff"
KIND: Any = a2a_pb2.SendMessageRequest.DESCRIPTOR


class Line:
    """Calls with bytes of the test's own, or with none."""

    def __init__(self, channel: grpc.aio.Channel, port: int) -> None:
        self._channel = channel
        self.port = port

    def call(self, method: str, body: bytes | None, key: str = "", **options: Any) -> Any:
        """Return the call under way; without a body it never sends its message."""
        path = f"/lf.a2a.v1.A2AService/{method}"
        metadata = (("a2a-version", "1.0"), *((("x-api-key", key),) if key else ()))
        options = {"metadata": metadata, "timeout": 20, **options}
        if body is None:
            return self._channel.stream_unary(path)(**options)
        return self._channel.unary_unary(path)(body, **options)

    async def code(self, method: str, body: bytes | None, key: str = "", **options: Any) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await self.call(method, body, key, **options)
        return failed.value.code()


@contextlib.asynccontextmanager
async def line(bench: Bench, rules: EntrySettings) -> AsyncIterator[tuple[App, Line]]:
    async with door(bench, bench.agent(), rules, worker=False) as (app, _):
        served = GrpcDoor("127.0.0.1", 0, rules.limits)
        await served.open(app, URL, Offer(grpc=served.address))
        async with grpc.aio.insecure_channel(served.address) as channel:
            yield app, Line(channel, served.port)
        await served.close(0)


def message(**fields: Any) -> bytes:
    made: bytes = ParseDict(sending(**fields, wait=False), a2a_pb2.SendMessageRequest()).SerializeToString()
    return made


def with_data(value: Value) -> bytes:
    sent = ParseDict(sending("HERE"), a2a_pb2.SendMessageRequest())
    sent.message.parts.add().data.CopyFrom(value)
    made: bytes = sent.SerializeToString()
    return made


def nested(depth: int) -> Value:
    value = Value(number_value=1)
    for _ in range(depth):
        value = Value(list_value=ListValue(values=[value]))
    return value


async def test_nothing_of_a_message_is_read_before_its_caller_has_come_in(bench: Bench) -> None:
    """Whoever shows nothing is told so, whatever they send, or whether they send anything."""
    async with line(bench, KEYS) as (app, calls):
        for body in (None, NO_MESSAGE, message()):
            assert await calls.code("SendMessage", body) == grpc.StatusCode.UNAUTHENTICATED
        assert await calls.code("SendMessage", NO_MESSAGE, await key_of(app, "alice")) == (
            grpc.StatusCode.INVALID_ARGUMENT
        )
        assert await app.store.tasks(10) == ()


async def test_a_message_that_does_not_come_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_BODY_S", 0.05)
    async with line(bench, entry()) as (_, calls):
        assert await calls.code("SendMessage", None) == grpc.StatusCode.DEADLINE_EXCEEDED


MALFORMED: dict[str, bytes] = {
    "cut": message(parts=[{"text": "x" * 50}])[:-10],
    "too deep": with_data(nested(limits.JSON_DEPTH_MAX)),
    "too many numbers": with_data(Value(list_value=ListValue(values=[Value(number_value=1)] * limits.JSON_VALUES_MAX))),
    "too many empty parts": message() + b"\x0a\x02\x2a\x00" * limits.JSON_VALUES_MAX,
    "a length that is none": b"\x0a" + b"\xff" * 20,
    "a group": b"\x0b\x0c",
    "a text that is none": b"\x0a\x03\x0a\x01\xff",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
async def test_a_message_that_would_cost_more_than_it_says_is_not_parsed(bench: Bench, body: bytes) -> None:
    async with line(bench, entry()) as (app, calls):
        assert await calls.code("SendMessage", body) == grpc.StatusCode.INVALID_ARGUMENT
        assert await app.store.tasks(10) == ()


FINE: dict[str, Json] = {
    "deep": {"parts": [{"data": [[[[[[[[[[{"a": {"b": [1]}}]]]]]]]]]]}]},
    "tags in a text": {"parts": [{"text": "\x0b\x0c\x2a\x00" * 50_000}]},
    "bytes": {"parts": [{"raw": "CwwqAAsMKgA=" * 1000, "mediaType": "image/png"}]},
    "many numbers": {"parts": [{"data": list(range(1000))}], "metadata": {"a": {"b": None, "c": True}}},
}


@pytest.mark.parametrize("fields", FINE.values(), ids=FINE)
async def test_a_message_that_only_looks_so_is_taken(bench: Bench, fields: Json) -> None:
    async with line(bench, entry()) as (app, calls):
        await calls.call("SendMessage", message(**fields))
        assert len(await app.store.tasks(10)) == 1


async def test_every_cut_of_a_message_is_seen_or_is_a_message_itself() -> None:
    whole = message(parts=[{"data": {"a": [1, {"b": "c"}]}}, {"text": "x"}], metadata={"n": 1})
    check_wire(whole, KIND)
    for length in range(len(whole)):
        try:
            a2a_pb2.SendMessageRequest.FromString(whole[:length])
        except DecodeError:  # what the parser refuses is refused before it
            with pytest.raises(MalformedError):
                check_wire(whole[:length], KIND)
        else:
            check_wire(whole[:length], KIND)


async def test_looking_over_a_message_takes_as_long_as_it_is() -> None:
    async with asyncio.timeout(20):
        with contextlib.suppress(MalformedError):
            await asyncio.to_thread(check_wire, b"\x0a\x00" * 6_000_000, KIND)


async def test_calls_beyond_all_places_are_dropped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is waited for, one is told why it is refused, and gRPC itself refuses what comes on top."""
    monkeypatch.setattr(door_limits, "CALLS_REFUSED_AT_ONCE_MAX", 0)
    async with line(bench, entry(REQUESTS_MAX="1")) as (_, calls):
        held = calls.call("SendMessage", None)
        await held.wait_for_connection()
        with pytest.raises(grpc.aio.AioRpcError) as dropped:
            await calls.call("SendMessage", message())
        assert dropped.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        held.cancel()
    monkeypatch.setattr(door_limits, "CALLS_REFUSED_AT_ONCE_MAX", 1)
    async with line(bench, entry(REQUESTS_MAX="1")) as (_, calls):
        held = calls.call("SendMessage", None)
        await held.wait_for_connection()
        assert await calls.code("SendMessage", message()) == grpc.StatusCode.UNAVAILABLE
        held.cancel()


async def test_a_place_is_given_back_however_a_call_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with line(bench, entry(REQUESTS_MAX="1")) as (app, calls):
        for body in (NO_MESSAGE, message(), message(parts=[]), message()):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await calls.call("SendMessage", body)
        assert len(await app.store.tasks(10)) == 2
        held = calls.call("SendMessage", None)
        await held.wait_for_connection()
        assert await calls.code("SendMessage", message()) == grpc.StatusCode.UNAVAILABLE
        held.cancel()
        await until(lambda: _is_let_in(calls))


async def _is_let_in(calls: Line) -> bool:
    try:
        await calls.call("ListTasks", b"")
    except grpc.aio.AioRpcError as refused:
        if refused.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return False
    return True


async def test_an_answer_that_nobody_reads_holds_its_place(bench: Bench) -> None:
    """By a client of the test's own, since gRPC's reads by itself: frames of HTTP/2, and no window for the answer."""
    async with line(bench, entry(REQUESTS_MAX="1")) as (app, calls):
        await calls.call("SendMessage", message(parts=[{"text": "x" * 1_000_000}]))
        (row,) = await app.store.tasks(10)
        reader, writer = await asyncio.open_connection("127.0.0.1", calls.port)
        writer.write(_asking("GetTask", a2a_pb2.GetTaskRequest(id=row.header.task_id).SerializeToString()))
        await reader.readuntil(b"x" * 1_000)  # the beginning of the answer
        assert await calls.code("ListTasks", b"") == grpc.StatusCode.UNAVAILABLE
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        await until(lambda: _is_let_in(calls))


def _asking(method: str, body: bytes) -> bytes:
    """Return a connection's first bytes and one call."""

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/lf.a2a.v1.A2AService/{method}",
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        "a2a-version": "1.0",
    }
    block = b"".join(
        bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in headers.items()
    )
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    return preface + frame(1, 4, 1, block) + frame(0, 1, 1, struct.pack(">BI", 0, len(body)) + body)


async def test_unknown_keys_of_one_address_are_refused_unseen_after_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_limits, "AUTH_FAILURES_BURST", 3.0)
    monkeypatch.setattr(door_limits, "AUTH_FAILURES_PER_S", 0.001)
    async with line(bench, KEYS) as (app, calls):
        known = await key_of(app, "alice")
        await calls.call("ListTasks", b"", known)
        codes = [await calls.code("ListTasks", b"", UNKNOWN) for _ in range(4)]
        assert codes == [*[grpc.StatusCode.UNAUTHENTICATED] * 3, grpc.StatusCode.RESOURCE_EXHAUSTED]
        await calls.call("ListTasks", b"", known)


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:127.0.0.1:4711", "127.0.0.1"),
        ("ipv6:%5B::1%5D:4711", "::1"),
        ("ipv6:[2001:db8::1]:4711", "2001:db8::1"),
        ("unix:/run/a.sock", "unix:/run/a.sock"),
    ],
)
async def test_the_address_in_a_peers_name(peer: str, host: str) -> None:
    assert host_of(peer) == host
