"""A person's word about a call in doubt goes through the ledger, and never against it (P4)."""

import pytest

from perdure.core.effects import Word
from perdure.core.errors import BegunError, ConfigurationError
from perdure.core.ports import Call, Execution
from perdure.tools import tool
from tests.tools.bench import BATCH, NOW_MS, Bench

HAPPENED = Word(happened=True, text="it happened: receipt r-17")
DID_NOT = Word(happened=False, text="it did not happen")
KEY = "task-1/1/0"


@tool
async def act(call: Call) -> str:
    raise OSError("the line broke")


@tool(effect="read")
async def other() -> None: ...


async def told(bench: Bench, word: Word, *, attempt: int = 2, lacks: bool = False) -> Execution:
    executor = bench.executor(other if lacks else act)
    return await executor.execute(BATCH, bench.request("act", attempt=attempt, resolve_only=True), "call-1", {}, word)


async def left_open(bench: Bench) -> None:
    with pytest.raises(BegunError):
        await bench.execute(act)


@pytest.mark.parametrize("lacks", [False, True], ids=["with the tool", "without it"])
async def test_what_happened_is_recorded_as_the_result(bench: Bench, lacks: bool) -> None:
    await left_open(bench)
    second = await told(bench, HAPPENED, lacks=lacks)
    result = await bench.result(second)
    assert (result.status, result.text) == ("ok", "A person says: it happened: receipt r-17")
    assert await bench.outcome() == ("done", [1])
    assert bench.slept_s == [], "a person needs no settling"


async def test_what_did_not_happen_closes_the_key(bench: Bench) -> None:
    await left_open(bench)
    assert await told(bench, DID_NOT) == Execution(outcome="closed")
    assert await bench.outcome() == ("closed", [1])


async def test_p4_the_first_word_stands_whatever_is_said_later(bench: Bench) -> None:
    await left_open(bench)
    first = await told(bench, HAPPENED)
    assert await told(bench, DID_NOT, attempt=3) == first


async def test_p4_a_recorded_result_wins_over_a_persons_word(bench: Bench) -> None:
    done = await bench.execute(tool(name="act")(returns))
    assert await told(bench, DID_NOT) == done


async def returns() -> str:
    return "done"


async def test_a_closed_key_stays_closed(bench: Bench) -> None:
    await left_open(bench)
    await bench.store.close_effect(KEY, NOW_MS)
    assert await told(bench, HAPPENED) == Execution(outcome="closed")


async def test_what_never_began_needs_no_word(bench: Bench) -> None:
    assert await told(bench, HAPPENED) == Execution(outcome="not_begun")


@pytest.mark.parametrize("setting", ["tell", "ask", "fail"])
def test_the_setting_is_recorded(setting: str) -> None:
    assert tool(in_doubt=setting)(returns).spec.in_doubt == setting  # type: ignore[call-overload] # one of the three


def test_other_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="tool 'returns', in_doubt: 'retry' is not one of tell, ask, fail"):
        tool(in_doubt="retry")(returns)  # type: ignore[call-overload] # on purpose
    with pytest.raises(ConfigurationError, match="a tool that only reads leaves nothing in doubt"):
        tool(effect="read", in_doubt="ask")(returns)
