"""`perdure steer`, `drop`, `stop` and `inbox`: what waits in a task of a served agent, and what becomes of it.

All of them may be asked again when an answer is lost: a message that is pushed ahead twice is ahead, and a run ends
once. Only a message that is taken back twice was taken back by the first, or acted on before it; that is said then.
"""

import asyncio
import json
from typing import Annotated, Any

import typer

from perdure.a2a import extension
from perdure.cli.client.conduct import PATIENCE_S, PatienceS, TaskId, Url
from perdure.cli.client.patience import Patience, patiently
from perdure.cli.client.refusals import Lost, Refusal
from perdure.cli.client.server import Server, checked_url, connected
from perdure.cli.output import note
from perdure.cli.tables import print_table
from perdure.core.errors import MessageNotWaiting

Json = dict[str, Any]

MessageId = Annotated[
    str, typer.Argument(metavar="MESSAGE", help="The message's id; `perdure inbox` lists those that wait.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def steer(
    url: Url, task: TaskId, message: MessageId, patience_s: PatienceS = PATIENCE_S, as_json: AsJson = False
) -> None:
    """Push a waiting message ahead: it joins the run at its next turn, or opens one.

    It works on a parked message too: that is how one is sent after a stop.
    """
    result = _asked(url, patience_s, extension.STEER, id=task, messageId=message)
    _say(as_json, f"{message} goes next", task_id=task, message_id=message, number=_number(result))


def drop(
    url: Url, task: TaskId, message: MessageId, patience_s: PatienceS = PATIENCE_S, as_json: AsJson = False
) -> None:
    """Take a waiting message back. It is never acted on."""
    result = _asked(url, patience_s, extension.WITHDRAW, id=task, messageId=message)
    _say(as_json, f"{message} is taken back", task_id=task, message_id=message, number=_number(result))


def stop(url: Url, task: TaskId, patience_s: PatienceS = PATIENCE_S, as_json: AsJson = False) -> None:
    """Stop what a task is at. No model or tool call of it begins any more when this returns.

    What waits is parked, and the next message goes on from here with all of
    it. `perdure cancel` ends the task for good.
    """
    result = _asked(url, patience_s, extension.STOP, id=task)
    stopped = bool(result.get("stopped"))
    text = f"{task} is stopped; the next message goes on" if stopped else f"nothing of {task} ran, nothing was stopped"
    _say(as_json, text, task_id=task, stopped=stopped, number=_number(result))


def inbox(url: Url, task: TaskId, patience_s: PatienceS = PATIENCE_S, as_json: AsJson = False) -> None:
    """List the messages that wait in a task, in the order in which they go."""
    result = _asked(url, patience_s, extension.INBOX, id=task)
    waiting = [_waiting(each) for each in result.get("messages", []) if isinstance(each, dict)]
    if as_json:
        print(json.dumps({"task_id": task, "number": _number(result), "messages": waiting}))
        return
    print_table(
        "",
        ("message", "lane", "stands", "number"),
        ((e["message_id"], e["lane"], "runnable" if e["runnable"] else "parked", e["tail"] or "") for e in waiting),
        "nothing waits",
    )


def _waiting(said: Json) -> Json:
    return {
        "message_id": str(said.get("messageId", "")),
        "lane": str(said.get("lane", "")),
        "runnable": bool(said.get("runnable")),
        "admitted": _number(said, "admitted"),
        "tail": _number(said, "tail"),
    }


def _asked(url: str, patience_s: float, name: str, **params: str) -> Json:
    checked_url(url)
    return asyncio.run(_ask(url, patience_s, name, params))


async def _ask(url: str, patience_s: float, name: str, params: dict[str, str]) -> Json:
    lost_one = False

    async def once(server: Server) -> Json:
        nonlocal lost_one
        try:
            return await server.extended(name, **params)
        except Lost as lost:
            lost_one = lost_one or lost.reached
            raise

    async with connected(url) as server:
        try:
            return await patiently(Patience(patience_s), lambda: once(server))
        except Refusal as refusal:
            if lost_one and (refusal.error.data or {}).get("code") == MessageNotWaiting.code:
                note("an answer was lost before: it may have been taken back by this very command")
            raise


def _number(said: Json, name: str = "generation") -> int:
    given = str(said.get(name, ""))
    return int(given) if given.isascii() and given.isdecimal() else 0


def _say(as_json: bool, text: str, **fields: object) -> None:
    print(json.dumps(fields) if as_json else text)
