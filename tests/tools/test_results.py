"""What a model is shown of a result, and what is kept of it (B14, B15)."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from perdure.core import limits
from perdure.core.content import ToolResult
from perdure.core.errors import ToolError
from perdure.tools import tool
from perdure.tools.results import shown
from tests.tools.bench import Bench


class Order(BaseModel):
    order_id: str
    total: float


async def result_of(bench: Bench, value: object, **request: Any) -> ToolResult:
    @tool
    async def give() -> object:
        return value

    return await bench.result(await bench.execute(give, **request))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("paid", "paid"),
        ({"z": 1, "a": "ä"}, '{"z": 1, "a": "ä"}'),
        (Order(order_id="7", total=1.5), '{"order_id": "7", "total": 1.5}'),
        ([], "[]"),
        (0, "0"),
        (False, "false"),
        (None, "Done. The tool returned nothing."),
        ("", "Done. The tool returned an empty text."),
        (float("nan"), "NaN"),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
        ({"k\x00": "\udfff"}, '{"k\\u0000": "\ufffd"}'),
    ],
)
async def test_a_result_is_shown_as_text(bench: Bench, value: object, text: str) -> None:
    result = await result_of(bench, value)
    assert (result.text, result.status, result.blob) == (text, "ok", None)
    assert (result.call_id, result.tool) == ("call-1", "give")


@pytest.mark.parametrize("value", [threading.Lock(), [10**5000], b"\xff"], ids=["lock", "number", "bytes"])
async def test_a_result_that_cannot_be_shown_is_done_all_the_same(bench: Bench, value: object) -> None:
    result = await result_of(bench, value)
    assert result.status == "ok"
    assert "its result cannot be shown" in result.text
    assert await bench.outcome() == ("done", [1])


@pytest.mark.parametrize(
    ("size", "is_cut"), [(limits.TOOL_TEXT_BYTES_MAX, False), (limits.TOOL_TEXT_BYTES_MAX + 1, True)]
)
async def test_a_text_is_cut_past_the_limit(bench: Bench, size: int, is_cut: bool) -> None:
    result = await result_of(bench, "x" * size)
    assert (result.blob is not None) is is_cut
    assert len(result.text.encode()) <= limits.TOOL_TEXT_BYTES_MAX


@pytest.mark.parametrize("character", ["x", "ä", "€", "😀"])
async def test_three_megabytes_are_kept_whole_and_shown_cut_on_a_character(bench: Bench, character: str) -> None:
    whole = "y" + character * (3 * limits.KIB * limits.KIB // len(character.encode()))
    result = await result_of(bench, whole)
    assert result.blob is not None
    assert (await bench.store.get_blob(result.blob)).decode() == whole
    beginning, notice = result.text.split("\n")
    assert whole.startswith(beginning)
    assert len(beginning.encode()) > limits.TOOL_TEXT_BYTES_MAX - 200
    assert (
        notice
        == f"[Cut: the result has {len(whole.encode())} bytes and only its beginning is shown. The whole is kept.]"
    )


async def test_many_large_results_at_once_are_all_kept(bench: Bench) -> None:
    value = {"rows": ["ä" * 1000] * 1000}
    results = await asyncio.gather(*(result_of(bench, value, index=index) for index in range(4)))
    blobs = {result.blob for result in results}
    assert len(blobs) == 1, "the same bytes are kept once"
    assert None not in blobs


async def test_what_is_too_large_to_keep_is_shown_cut_and_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BLOB_BYTES_MAX", 60_000)
    result = await result_of(bench, "x" * 60_001)
    assert result.blob is None
    assert "\n[Cut: the result has 60001 bytes and only its beginning is shown. " in result.text
    assert result.text.endswith("The whole was not kept, it is over 60000 bytes.]")
    assert len(result.text.encode()) == limits.TOOL_TEXT_BYTES_MAX


async def test_an_error_text_is_bounded_and_safe(bench: Bench) -> None:
    @tool
    async def refuse() -> None:
        raise ToolError("\x00" + "ä" * limits.PROBLEM_BYTES_MAX)

    result = await bench.result(await bench.execute(refuse))
    assert result.status == "error"
    assert len(result.text.encode()) <= limits.PROBLEM_BYTES_MAX
    assert result.text.startswith("\ufffdää")
    assert result.text.endswith("[cut]")


def test_a_deeply_nested_value_is_never_an_error() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert "cannot be shown" in shown(value).text
