"""gRPC's gate: the same bounds as HTTP's, said in gRPC's words."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.types import a2a_pb2, a2a_pb2_grpc
from google.protobuf.json_format import ParseDict
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from perdure import App
from perdure.a2a.rpc import GrpcDoor
from perdure.app.entry import EntrySettings
from perdure.app.offer import Offer
from perdure.core import limits
from tests.a2a.desk import URL, sending
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


@contextlib.asynccontextmanager
async def rpc(bench: Bench, rules: EntrySettings) -> AsyncIterator[tuple[App, Any]]:
    async with door(bench, bench.agent(), rules, worker=False) as (app, _):
        served = GrpcDoor("127.0.0.1", 0)
        await served.open(app, URL, Offer(grpc=served.address))
        async with grpc.aio.insecure_channel(served.address) as channel:
            stub: Any = a2a_pb2_grpc.A2AServiceStub
            yield app, stub(channel)
        await served.close(0)


def _as(key: str) -> dict[str, Any]:
    return {"metadata": (("a2a-version", "1.0"), ("x-api-key", key)), "timeout": 20}


def _message(text: str = "hello") -> Any:
    return ParseDict(sending(text), a2a_pb2.SendMessageRequest())


async def _fails(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value


def _retry_after_s(error: grpc.aio.AioRpcError) -> int:
    status, info = Status(), RetryInfo()
    status.ParseFromString(dict(error.trailing_metadata() or ())["grpc-status-details-bin"])
    assert any(detail.Unpack(info) for detail in status.details if detail.Is(RetryInfo.DESCRIPTOR))
    seconds: int = info.retry_delay.seconds
    return seconds


async def test_who_shows_nothing_is_challenged(bench: Bench) -> None:
    async with rpc(bench, entry(AUTH="keys")) as (app, stub):
        error = await _fails(stub.ListTasks(a2a_pb2.ListTasksRequest(), timeout=20))
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED
        assert dict(error.trailing_metadata() or ())["www-authenticate"].startswith("ApiKey")
        twice = {"metadata": (*_as(await key_of(app, "alice"))["metadata"], ("x-api-key", "x")), "timeout": 20}
        assert (await _fails(stub.ListTasks(a2a_pb2.ListTasksRequest(), **twice))).code() == error.code()


async def test_too_often_is_told_with_when_to_come_back(bench: Bench) -> None:
    async with rpc(bench, entry(AUTH="keys", REQUESTS_PER_S="0.5")) as (app, stub):
        key = await key_of(app, "alice")
        await stub.ListTasks(a2a_pb2.ListTasksRequest(), **_as(key))
        error = await _fails(stub.ListTasks(a2a_pb2.ListTasksRequest(), **_as(key)))
        assert (error.code(), _retry_after_s(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 2)


async def test_a_stream_has_a_place_and_ends_with_its_key(bench: Bench) -> None:
    rules = entry(AUTH="keys", STREAMS_PER_PRINCIPAL_MAX="1", CREDENTIAL_RECHECK_S="0.05")
    async with rpc(bench, rules) as (app, stub):
        key = await key_of(app, "alice")
        held = stub.SendStreamingMessage(_message(), **_as(key))
        first = await held.read()
        assert first.task.id
        full = await _fails(stub.SendStreamingMessage(_message(), **_as(key)).read())
        assert full.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        rest = asyncio.ensure_future(held.read())
        await asyncio.wait({rest}, timeout=0.3)
        assert not rest.done()
        await app.store.revoke_key(key.split("_")[1], 2)
        assert (await _fails(rest)).code() == grpc.StatusCode.UNAUTHENTICATED
        assert len(await app.store.tasks(10)) == 1


async def test_a_stream_that_is_left_gives_its_place_back(bench: Bench) -> None:
    async with rpc(bench, entry(AUTH="keys", STREAMS_PER_PRINCIPAL_MAX="1")) as (app, stub):
        key = await key_of(app, "alice")
        held = stub.SendStreamingMessage(_message(), **_as(key))
        await held.read()
        held.cancel()

        async def free() -> bool:
            again = stub.SendStreamingMessage(_message(), **_as(key))
            try:
                await again.read()
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                return False
            finally:
                again.cancel()
            return True

        await until(free)


async def test_a_message_that_is_too_large_is_not_taken(bench: Bench) -> None:
    async with rpc(bench, entry()) as (app, stub):
        large = _message("x" * (limits.REQUEST_BYTES_MAX + 1))
        error = await _fails(stub.SendMessage(large, metadata=(("a2a-version", "1.0"),), timeout=20))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await app.store.tasks(10) == ()
