"""ListTasks: a page of the tasks that the caller may see, the one with the newest status first (A2A 3.1.4).

A page ends where it has as many tasks as were asked for, or PAGE_BYTES_MAX: whoever follows `nextPageToken` gets all of
them, in more pages.
"""

import asyncio
import base64
import binascii
import json
from typing import Final

from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils.errors import TaskNotFoundError

from perdure.a2a.caller import Caller
from perdure.a2a.errors import invalid
from perdure.a2a.tasks import TaskReader
from perdure.a2a.translate import STATES
from perdure.app.app import App
from perdure.core import door_limits, limits
from perdure.core.ports import TaskPage, TaskQuery, TaskRow

OTHERS: Final = frozenset({TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_AUTH_REQUIRED})
"""States of A2A in which no task of ours ever is."""


async def listed(
    app: App, reader: TaskReader, params: ListTasksRequest, caller: Caller, history_length: int | None
) -> ListTasksResponse:
    """Return the page. Raises A2A's InvalidParamsError for a size, a token or a state that is none."""
    limit = _page_size(params)
    query = TaskQuery(
        principal=caller.principal,
        agent_id=app.agent.id,
        context_id=params.context_id or None,
        states=_states(params.status),
        status_since_ms=_since_ms(params),
        before=_position(params.page_token),
        limit=limit + 1,
    )
    page = TaskPage(rows=(), total=0) if params.status in OTHERS else await app.store.find_tasks(query)
    response = ListTasksResponse(page_size=limit, total_size=page.total)

    async def told(row: TaskRow) -> Task | None:
        try:
            view = await reader.view(await reader.see(row.header.task_id, caller))
        except TaskNotFoundError:
            return None  # gone since the page was read
        return await reader.task(view, history_length, artifacts=params.include_artifacts)

    room, shown = door_limits.PAGE_BYTES_MAX, 0
    while shown < min(limit, len(page.rows)) and room > 0:
        group = page.rows[shown : min(limit, shown + door_limits.PAGE_TASKS_AT_ONCE_MAX)]
        for task in await asyncio.gather(*map(told, group)):
            room -= 0 if task is None else task.ByteSize()
            if room < 0 and response.tasks:
                break  # the next page begins with it
            if task is not None:
                response.tasks.append(task)
            shown += 1
    if shown < len(page.rows):
        last = page.rows[shown - 1]
        response.next_page_token = _token((last.status_at_ms, last.header.task_id))
    return response


def _page_size(params: ListTasksRequest) -> int:
    if not params.HasField("page_size"):
        return limits.LIST_PAGE_DEFAULT
    if not 1 <= params.page_size <= limits.LIST_PAGE_MAX:
        raise invalid("pageSize", f"is {params.page_size}; give 1 to {limits.LIST_PAGE_MAX}")
    return params.page_size


def _states(status: TaskState) -> tuple[str, ...]:
    if status == TaskState.TASK_STATE_UNSPECIFIED or status in OTHERS:
        return ()
    found = tuple(ours for ours, theirs in STATES.items() if theirs == status)
    if not found:
        raise unknown_state(str(status))
    return found


def unknown_state(given: str) -> Exception:
    """Return the error for a state that there is not."""
    return invalid("status", f"{given!r} is no task state; use one of {', '.join(TaskState.keys()[1:])}")


def _since_ms(params: ListTasksRequest) -> int | None:
    if not params.HasField("status_timestamp_after"):
        return None
    return -(-params.status_timestamp_after.ToNanoseconds() // 1_000_000)


def _token(position: tuple[int, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _position(token: str) -> tuple[int, str] | None:
    if not token:
        return None
    try:
        at_ms, task_id = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise _no_token() from error
    if not isinstance(at_ms, int) or isinstance(at_ms, bool) or not isinstance(task_id, str) or abs(at_ms) >> 62:
        raise _no_token()
    return at_ms, task_id


def _no_token() -> Exception:
    return invalid("pageToken", "is none of this server's; give the nextPageToken of the page before, unchanged")
