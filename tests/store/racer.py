"""A process that begins and finishes effects when it is told to; run as `python -m tests.store.racer URL ROLE`.

`begin NAME KEYS`: says `ready`, waits for a line, begins that many `once` calls of one task and prints the verdicts.
`write TASK`: writes rows, effects and results of the task for ever and prints each number once it is acknowledged.
"""

import asyncio
import sys

from perdure.core.log import TaskHeader
from perdure.store import SqlStore, open_store
from tests.store.building import batch, header, inline, request, row, tool_entry


async def begin(store: SqlStore, name: str, keys: int) -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    verdicts = []
    for turn in range(1, keys + 1):
        asked = request("raced", turn=turn, worker=name)
        verdicts.append((await store.begin_effect(batch("raced"), asked, 200)).verdict)
    print(",".join(verdicts), flush=True)


async def write(store: SqlStore, task_id: str) -> None:
    named: TaskHeader = header(task_id)
    known = await store.task(task_id)
    number = known.last_number if known else 0
    last = await store.events_after(task_id, number - 1, 1) if number else ()
    chain = last[0].event.entries[0].chain if last else ""
    while True:
        number += 1
        ref = inline(number, f"result {number}", chain)
        chain = ref.chain
        rows = batch(task_id, row(number, entries=(ref,)), header=named, confirmed=number - 1)
        asked = request(task_id, turn=number)
        await store.begin_effect(rows, asked, 200)
        await store.finish_effect(asked.key, 1, tool_entry(f"done {number}"), 210)
        print(number, flush=True)


async def main(url: str, role: str, name: str, *rest: str) -> None:
    store = await open_store(url)
    if role == "begin":
        await begin(store, name, int(rest[0]))
    else:
        await write(store, name)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
