"""How providers fail, and what a retry can do about it. Each failure is one request: the SDKs' retries are off."""

import asyncio
import socket
from email.utils import formatdate
from time import time

import pytest

from perdure.core import limits
from perdure.core.errors import ModelError
from perdure.models import open_model
from perdure.models.adapter import ProviderModel
from tests.models.conftest import NAMES, Opener
from tests.models.talk import ask, user
from tests.models.wire import Broken, Refused, Said, Silence, Wire

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ALL_FORMATS = pytest.mark.parametrize("wire_format", ["chat", "responses", "messages"])
BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


async def _failure(model: ProviderModel, deltas: list[str] | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, user("Hello"), deltas=deltas)
    return caught.value


IN_AN_HOUR = "in an hour"

VERDICTS = {
    400: False,
    401: False,
    403: False,
    404: False,
    408: True,
    409: True,
    413: False,
    422: False,
    429: True,
    500: True,
    502: True,
    503: True,
    529: True,
}


@ALL_FORMATS
@BOTH_WAYS
async def test_each_status_is_one_request_and_one_verdict(
    opened: Opener, wire: Wire, wire_format: str, stream: bool
) -> None:
    model = opened(wire_format, stream=stream)
    for requests, (status, retryable) in enumerate(VERDICTS.items(), start=1):
        wire.prepare(Refused(status, "the reason in words"))
        error = await _failure(model)
        assert error.retryable is retryable, status
        assert error.elsewhere is (status not in {400, 413, 422}), "what was refused was the request, or who sent it"
        assert f"HTTP {status}: the reason in words" in str(error)
        assert NAMES[wire_format] in str(error)
        assert len(wire.received) == requests


@ALL_FORMATS
@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        ({"retry-after": "5"}, 5, 5),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, 1.5),
        ({"retry-after": IN_AN_HOUR}, 3500, 3600),
    ],
    ids=["seconds", "zero", "milliseconds first", "date"],
)
async def test_b16_retry_after_is_passed_on(
    opened: Opener, wire: Wire, wire_format: str, headers: dict[str, str], least_s: float, most_s: float
) -> None:
    # The date is made here: tests may be collected long before they run.
    in_an_hour = formatdate(time() + 3600, usegmt=True)
    sent = {name: in_an_hour if value == IN_AN_HOUR else value for name, value in headers.items()}
    wire.prepare(Refused(429, "slow down", headers=sent))
    error = await _failure(opened(wire_format))
    assert error.retryable
    assert error.retry_after_s is not None
    assert least_s <= error.retry_after_s <= most_s


@ALL_FORMATS
async def test_b16_without_the_header_there_is_no_floor(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Refused(529, "overloaded", headers={"retry-after": "soon"}))
    error = await _failure(opened(wire_format))
    assert (error.retryable, error.retry_after_s) == (True, None)


@pytest.mark.parametrize("wire_format", ["chat", "responses"])
async def test_b18_an_exhausted_quota_is_final(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Refused(429, "You exceeded your current quota", "insufficient_quota"))
    error = await _failure(opened(wire_format))
    assert not error.retryable
    assert error.elsewhere, "another model may have a quota left"
    assert "quota" in str(error)


@ALL_FORMATS
@BOTH_WAYS
async def test_a_connection_cut_inside_the_answer_is_another_attempt(
    opened: Opener, wire: Wire, wire_format: str, stream: bool
) -> None:
    deltas: list[str] = []
    wire.prepare(Broken(Said("A long answer that is cut somewhere"), after_events=6))
    error = await _failure(opened(wire_format, stream=stream), deltas)
    assert error.retryable
    assert len(wire.received) == 1
    assert not stream or deltas


@ALL_FORMATS
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_an_error_inside_the_stream_is_another_attempt(
    opened: Opener, wire: Wire, wire_format: str, status: int
) -> None:
    wire.prepare(Broken(Said("A long answer that is cut somewhere"), error=Refused(status, "too many of you")))
    error = await _failure(opened(wire_format))
    assert error.retryable
    assert "too many of you" in str(error)
    assert len(wire.received) == 1


@ALL_FORMATS
async def test_a_stream_that_ends_early_without_an_error_is_no_answer(
    opened: Opener, wire: Wire, wire_format: str
) -> None:
    wire.prepare(Broken(Said("A long answer that is cut somewhere"), after_events=6, abruptly=False))
    error = await _failure(opened(wire_format))
    assert error.retryable
    assert len(wire.received) == 1


@ALL_FORMATS
async def test_no_server_is_another_attempt(wire: Wire, wire_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound and not listening: refuses, and nobody else can take the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        model = open_model(NAMES[wire_format])
        assert isinstance(model, ProviderModel)
        error = await _failure(model)
        await model.close()
    assert error.retryable
    assert "onnect" in str(error)
    assert "(" in str(error)  # the cause in its own words
    assert wire.received == []


@ALL_FORMATS
@BOTH_WAYS
async def test_b4_cancelling_leaves_at_once(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    wire.prepare(Silence())
    asking = asyncio.create_task(ask(opened(wire_format, stream=stream), user("Hello")))
    assert await asyncio.to_thread(wire.arrived.wait, 10)

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, timeout=5)
    assert await asyncio.to_thread(wire.left.wait, 10)  # the provider saw the client go
    assert len(wire.received) == 1


@ALL_FORMATS
async def test_an_error_text_is_short_and_without_the_key(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Refused(401, "bad key key-of-the-test-0123456789 " + "x" * 10_000))
    error = await _failure(opened(wire_format))
    assert "key-of-the-test" not in str(error)
    assert len(str(error).encode()) <= limits.PROBLEM_BYTES_MAX


async def test_a_chain_of_fallbacks_is_retryable_when_one_of_its_models_is(wire: Wire, opened: Opener) -> None:
    from pydantic_ai.models import infer_model
    from pydantic_ai.models.fallback import FallbackModel

    chain = FallbackModel(infer_model(NAMES["chat"]), infer_model(NAMES["messages"]))
    model = open_model(chain)
    assert isinstance(model, ProviderModel)
    wire.prepare(Refused(401, "bad key"), Refused(529, "overloaded", headers={"retry-after": "3"}), Said("Hello."))
    error = await _failure(model)
    assert (error.retryable, error.retry_after_s) == (True, 3)
    assert (await ask(model, user("Hello"))).text == "Hello."
    await model.close()
