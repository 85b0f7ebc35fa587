"""What calls come to, against a real service: results, refusals, doubts, and what was sent meanwhile."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from perdure.core import http_limits
from perdure.core.artifacts import File, WithFiles
from perdure.core.errors import BegunError, ConfigurationError, OutcomeUnknown, ToolError, Unavailable
from perdure.core.ports import ToolPort
from perdure.core.tool_calls import Connects
from perdure.core.tool_rules import ToolRules
from perdure.tools.addresses import Address
from tests.temporal.bench import WAIT_S, until
from tests.tools.http.running import KEY, RULES, Service, opened

pytestmark = pytest.mark.slow


async def test_classes_follow_from_methods_unless_rules_say_otherwise(service: Service) -> None:
    rules = {**RULES, "post_status": ToolRules(effect="read", timeout_s=5)}
    async with opened(base_url=service.url, rules=rules) as tools:
        classes = {name: port.spec.effect for name, port in tools.ports.items()}
    assert classes["get_order"] == classes["head_file"] == classes["post_status"] == "read"
    assert classes["put_order"] == classes["delete_order"] == "idempotent"
    assert classes["refund"] == "once"


async def test_the_key_goes_with_every_call_that_is_no_read(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        await tools.call("get_order", order_id="A 1/2")
        await tools.call("put_order", order_id="A 1/2")
        await tools.call("delete_order", order_id="A 1/2")
        await tools.call("refund", order_id="A-1", amount=5)
    assert [request["key"] for request in service.requests] == ["", KEY, KEY, KEY]
    assert [request["path"] for request in service.requests][:3] == ["/orders/A%201%2F2"] * 3


async def test_a_once_call_has_a_connection_that_nobody_had_before(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        for tool in ("get_order", "put_order", "refund", "refund", "get_order"):
            await tools.call(tool, order_id="A-1")
    kept, again, first, second, last = (request["port"] for request in service.requests)
    assert kept == again == last
    assert len({kept, first, second}) == 3


async def test_results_are_json_texts_or_files(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        assert await tools.call("get_order", order_id="A-1") == {"order_id": "A-1", "item": "blender"}
        assert await tools.call("get_text", say="für") == "für"
        file = await tools.call("get_file")
        assert file == WithFiles("", (File(media_type="image/png", name="get_file", data=bytes(range(256))),))
        head = await tools.call("head_file")
        assert head == {"status": 200, "content-type": "image/png", "content-length": "256"}


async def test_an_answer_without_bound_is_cut(service: Service) -> None:
    times = http_limits.ANSWER_BYTES_MAX // 5 + 1
    async with opened(base_url=service.url) as tools:
        text = await tools.call("get_text", say="hello", times=str(times))
        assert len(text) < http_limits.ANSWER_BYTES_MAX + 200
        assert text.endswith(f"it is over {http_limits.ANSWER_BYTES_MAX} bytes.]")
        told = await tools.call("get_file", times=str(http_limits.ANSWER_BYTES_MAX // 256 + 1))
        assert "was not kept" in told


async def test_an_answer_that_comes_compressed_unasked_is_unpacked_within_the_bound(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        assert (await tools.call("get_order", order_id="A-1", trouble="gzip"))["item"] == "blender"
        times = str(http_limits.ANSWER_BYTES_MAX // 256 + 1)
        told = await tools.call("get_file", times=times, type="text/plain", trouble="gzip")
        assert told.endswith(f"it is over {http_limits.ANSWER_BYTES_MAX} bytes.]")
    assert service.requests[0]["headers"]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("trouble", ["before-effect", "after-effect"])
async def test_a_lost_connection_leaves_a_once_call_in_doubt(service: Service, trouble: str) -> None:
    async with opened(base_url=service.url) as tools:
        with pytest.raises(OutcomeUnknown, match="the request was sent, and no answer came"):
            await tools.call("refund", order_id="A-1", trouble=trouble)
        with pytest.raises(BegunError):
            await tools.call("put_order", order_id="A-1", trouble=trouble)
    assert len(service.requests) == 2
    assert service.effects == ([KEY] if trouble == "after-effect" else [])  # both calls have one key here


@pytest.mark.parametrize("trouble", ["cut", "slow"])
async def test_a_status_that_came_stands_though_the_rest_is_lost(service: Service, trouble: str) -> None:
    rules = {"*": ToolRules(timeout_s=1)} if trouble == "slow" else RULES
    async with opened(base_url=service.url, rules=rules) as tools:
        told = await tools.call("refund", order_id="A-1", trouble=trouble)
        assert "[Cut: only the first" in told
        with pytest.raises(BegunError):
            await tools.call("get_file", type="text/plain", trouble=trouble)
    assert service.effects == [KEY]


@pytest.mark.parametrize("tool", ["refund", "put_order"])
async def test_a_status_that_came_stands_though_the_call_is_stopped(
    service: Service, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    def heard() -> bool:
        """Whether the client says that it has the status, and reads the body, which does not end."""
        return any(line.startswith("receive_response_body.started") for line in caplog.messages)

    caplog.set_level("DEBUG", "httpcore.http11")
    async with opened(base_url=service.url) as tools:
        calling = asyncio.create_task(tools.call(tool, order_id="A-1", trouble="slow"))
        await until(heard)
        calling.cancel()
        assert "[Cut: only the first" in await calling


async def test_a_call_that_is_stopped_before_its_answer_is_in_doubt(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        calling = asyncio.create_task(tools.call("refund", order_id="A-1", trouble="hold"))
        await until(lambda: bool(service.effects))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


@pytest.mark.parametrize("moment", ["while it connects", "between tries"])
async def test_a_once_call_that_is_stopped_before_anything_was_sent_did_not_happen(
    service: Service, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, there = 0, asyncio.Event()

    async def looked_up(host: str, port: int) -> list[Address]:
        nonlocal tries
        tries += 1
        if moment == "while it connects":
            there.set()
            await asyncio.Event().wait()
        if tries == 2:  # a first pause is over, and the next one begins as soon as this has failed
            there.set()
        raise Unavailable("the name leads nowhere")

    monkeypatch.setattr("perdure.tools.outside.looked_up", looked_up)
    async with opened(base_url=service.url) as tools:
        calling = asyncio.create_task(tools.call("refund", order_id="A-1"))
        async with asyncio.timeout(WAIT_S):
            await there.wait()
        calling.cancel()
        with pytest.raises(ToolError, match="Not done: nothing was sent"):
            await calling
    assert service.requests == []


async def test_a_service_that_is_not_there_was_sent_nothing(service: Service) -> None:
    service.kill()
    try:
        async with opened(base_url=service.url) as tools:
            with pytest.raises(ToolError, match="nothing was sent"):
                await tools.call("refund", order_id="A-1")
            with pytest.raises(BegunError, match="nothing was sent"):
                await tools.call("put_order", order_id="A-1")
    finally:
        service.start()


async def test_an_idempotent_call_is_not_begun_where_nobody_answers(service: Service) -> None:
    """Else the last of its attempts would be in doubt, of which nothing was ever sent."""
    async with opened(base_url=service.url) as tools:
        await tools.call("put_order", order_id="A-1")  # a connection is kept, and it ends with its service
        for tool in ("put_order", "get_order", "refund"):
            assert await ready(tools.ports[tool]) == ""
        service.kill()
        try:
            with pytest.raises(Unavailable, match="nothing was sent to the service: nobody answers at port"):
                await ready(tools.ports["put_order"])
            assert await ready(tools.ports["get_order"]) == await ready(tools.ports["refund"]) == ""
        finally:
            service.start()
        assert await ready(tools.ports["put_order"]) == ""
    assert len(service.requests) == 1


async def ready(tool: ToolPort) -> str:
    assert isinstance(tool, Connects)
    return await tool.ready(None)


async def test_a_service_that_comes_back_meanwhile_gets_its_once_call(service: Service) -> None:
    service.kill()
    started = False
    try:
        async with opened(base_url=service.url) as tools:
            calling = asyncio.create_task(tools.call("refund", order_id="A-1"))
            service.start()
            started = True
            assert (await calling)["order_id"] == "A-1"
    finally:
        if not started:
            service.start()
    assert service.effects == [KEY]


@pytest.mark.parametrize(
    ("status", "comes_to"), [(400, ToolError), (404, ToolError), (429, ToolError), (503, OutcomeUnknown)]
)
async def test_a_once_call_that_was_refused_did_not_happen(
    service: Service, status: int, comes_to: type[Exception]
) -> None:
    async with opened(base_url=service.url) as tools:
        with pytest.raises(comes_to, match=f"the service answered {status} .*: .*as you wished"):
            await tools.call("post_status", status=str(status))
    assert len(service.requests) == 1


async def test_a_service_that_asks_for_time_is_given_it(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        for tool in ("read_status", "put_status"):
            with pytest.raises(BegunError) as failed:
                await tools.call(tool, status="429")
            assert failed.value.retry_after_s == 7
        with pytest.raises(ToolError, match="It asks to wait 7 s"):
            await tools.call("post_status", status="429")


async def test_a_later_refusal_says_nothing_of_an_earlier_attempt(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        with pytest.raises(ToolError, match=r"wished\"}\.$"):
            await tools.call("put_status", status="404")
        with pytest.raises(ToolError, match="An earlier attempt of this call may have taken effect"):
            await tools.call("put_status", attempt=2, status="404")
        assert (await tools.call("delete_status", attempt=2, status="404"))["problem"] == "as you wished"


async def test_a_read_is_followed_within_its_origin_only(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        assert (await tools.call("moved", to="/orders/A-1"))["order_id"] == "A-1"
        assert (await tools.call("moved", to=f"{service.url}/orders/A-2", status="308"))["order_id"] == "A-2"
        for elsewhere in (f"http://localhost:{service.port}/orders/A-3", "ftp://x/", "http://user@127.0.0.1/", "/a b"):
            with pytest.raises(ToolError, match="moved to"):
                await tools.call("moved", to=elsewhere)
        before = len(service.requests)
        with pytest.raises(ToolError, match="moved to /orders/A-1"):
            await tools.call("put_moved", to="/orders/A-1", status="307")
        assert len(service.requests) == before + 1


async def test_a_loop_of_redirects_ends(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        with pytest.raises(ToolError, match="302 Found, moved to"):
            await tools.call("moved", to=_nested(20))
    assert len(service.requests) == http_limits.REDIRECTS_MAX + 1


def _nested(times: int) -> str:
    to = "/orders/A-1"
    for _ in range(times):
        to = f"/moved?to={quote(to, safe='')}"
    return to


# --- the check --------------------------------------------------------------------------------------------------


async def test_a_check_that_says_so_in_its_own_words(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        with pytest.raises(OutcomeUnknown):
            await tools.call("refund", order_id="A-1", trouble="after-effect")
        found = await tools.check("refund")
        assert (found.answer, found.result["refund"]) == ("happened", "R-1")


async def test_a_check_that_closes_the_key_refuses_what_comes_late(service: Service) -> None:
    async with opened(base_url=service.url) as tools:
        assert (await tools.check("refund")).answer == "never"
        with pytest.raises(ToolError, match="409"):
            await tools.call("refund", order_id="A-1")
    assert service.effects == []


async def test_a_check_by_a_path_may_answer_plainly(service: Service) -> None:
    rules = {"refund": ToolRules(check="find_refund", settle_s=0, timeout_s=5)}
    async with opened(base_url=service.url, rules=rules) as tools:
        assert (await tools.check("refund")).answer == "not_yet"
        await tools.call("refund", order_id="A-1")
        found = await tools.check("refund")
        assert (found.answer, found.result["refund"]) == ("happened", "R-1")


async def test_a_check_that_says_neither_settles_nothing(service: Service) -> None:
    rules: dict[str, Any] = {"refund": ToolRules(check="get_text", timeout_s=5), "*": ToolRules(timeout_s=5)}
    with pytest.raises(ConfigurationError, match="'get_text' has no parameter for the key"):
        async with opened(base_url=service.url, rules=rules):
            pass
    rules["refund"] = ToolRules(check="get_order", timeout_s=5)
    async with opened(base_url=service.url, rules=rules) as tools:
        assert (await tools.check("refund")).answer == "happened"  # it stands in the path


async def test_an_operation_without_check_says_that_nobody_knows(service: Service) -> None:
    async with opened(base_url=service.url, rules={}) as tools:
        assert (await tools.check("refund")).answer == "unknown"
