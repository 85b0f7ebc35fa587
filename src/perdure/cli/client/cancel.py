"""`perdure cancel`: cancel a task of a served agent, for good."""

import asyncio
import json
from typing import Annotated

import typer
from a2a.utils.errors import TaskNotCancelableError

from perdure.cli.client.conduct import PATIENCE_S, PatienceS, TaskId, Url
from perdure.cli.client.patience import Patience
from perdure.cli.client.refusals import Lost, Refusal
from perdure.cli.client.said import said_of_task
from perdure.cli.client.server import Server, checked_url, connected
from perdure.cli.output import note


def cancel(
    url: Url,
    task: TaskId,
    patience_s: PatienceS = PATIENCE_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cancel a task for good. Nothing of it begins any more when this returns."""
    checked_url(url)
    state = asyncio.run(_canceled(url, task, patience_s))
    print(json.dumps({"task_id": task, "state": state}) if as_json else f"{task} is {state.upper()}")
    if state != "canceled":
        note("the cancel was taken in; what was under way takes longer to end")


async def _canceled(url: str, task_id: str, patience_s: float) -> str:
    async with connected(url) as server:
        return await _until_answered(server, task_id, Patience(patience_s))


async def _until_answered(server: Server, task_id: str, patience: Patience) -> str:
    """Cancel; where an answer was lost, a refusal may only mean that it was done the first time."""
    lost_one = False
    while True:
        try:
            return said_of_task(await server.cancel(task_id)).state
        except Lost as lost:
            lost_one = lost_one or lost.reached
            if patience.tries == 0:
                note(f"{lost}; trying again")
            await patience.wait(str(lost), lost.retry_after_s)
        except Refusal as refusal:
            if not (lost_one and isinstance(refusal.error, TaskNotCancelableError)):
                raise
            state = said_of_task(await server.task(task_id)).state
            if state != "canceled":
                raise
            return state
