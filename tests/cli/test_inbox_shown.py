"""`perdure show` lists what waits in a task, from the store alone."""

import asyncio

from perdure.core.log import Batch, LogEvent, TaskHeader
from perdure.store import open_store
from tests.cli.desk import Desk

ROWS = (
    LogEvent(number=1, kind="task.created", at_ms=1),
    LogEvent(number=2, kind="message.admitted", at_ms=2, data={"message_id": "m-1", "digest": "d1", "lane": "queue"}),
    LogEvent(number=3, kind="message.admitted", at_ms=3, data={"message_id": "m-2", "digest": "d2", "lane": "queue"}),
    LogEvent(number=4, kind="run.stopped_before_start", at_ms=4),
    LogEvent(number=5, kind="task.status", at_ms=5, data={"state": "input_required", "reason": "stopped"}),
    LogEvent(number=6, kind="message.moved", at_ms=6, data={"message_id": "m-2", "lane": "steer"}),
)


async def _write(url: str) -> None:
    store = await open_store(url)
    header = TaskHeader(task_id="t-1", context_id="c-1", agent_id="shop", principal="")
    await store.write(Batch(task_id="t-1", header=header, rows=ROWS), 1)
    await store.close()


def test_what_waits_is_shown_with_its_lane_and_number(desk: Desk) -> None:
    desk.home.mkdir(mode=0o700)
    asyncio.run(_write(f"sqlite:///{desk.home / 'store.db'}"))
    shown = desk.here("show", "t-1")
    assert shown.code == 0, shown.err
    listed = [line for line in shown.out.splitlines() if line.startswith("inbox ")]
    assert listed == ["inbox    m-2 (steer, runnable, 6)", "inbox    m-1 (queue, parked, 2)"]
    (found,) = desk.here("show", "t-1", "--json").objects
    assert [(each["message_id"], each["runnable"], each["tail"]) for each in found["inbox"]] == [
        ("m-2", True, 6),
        ("m-1", False, 2),
    ]
