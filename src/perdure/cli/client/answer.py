"""`perdure answer`: answer the question of a task of a served agent, and stay until its run has ended.

An answer is a message that says which question it is for. The question is looked up first, so that a text which was
meant as an answer never becomes an order of its own: not when nobody asked, and not when somebody else has answered.
"""

from contextlib import aclosing
from typing import Annotated

import typer

from perdure.cli.client.conduct import PATIENCE_S, AsJson, Conduct, PatienceS, TaskId, Url, words_of
from perdure.cli.client.ends import MessageEnd, StateEnd
from perdure.cli.client.following import Follower
from perdure.cli.client.giving import given, message_id_of, usable_key
from perdure.cli.client.patience import Patience, patiently
from perdure.cli.client.said import ASKING, TERMINAL, Said, said_in, said_of_task
from perdure.cli.client.send import Key, Wait
from perdure.cli.client.server import Server
from perdure.cli.client.telling import telling_of
from perdure.core.errors import InvalidInput


def answer(
    context: typer.Context,
    url: Url,
    task: TaskId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The answer.")],
    question: Annotated[
        str | None, typer.Option("--question", metavar="ID", help="Which question, where the task asks several.")
    ] = None,
    key: Key = None,
    wait: Wait = None,
    patience_s: PatienceS = PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Answer a task's question, show what follows, print the agent's answer."""
    words = words_of("TEXT", text)
    used = usable_key(key)

    async def begin(server: Server) -> Follower:
        patience = Patience(patience_s)
        help_id = await patiently(patience, lambda: _question(server, task, question, message_id_of(used)))
        to_give = given(words, used, task_id=task, help_id=help_id, at_once=wait is False)
        ending = MessageEnd(message_id_of(used)) if server.numbers else StateEnd(sent=True)
        return Follower(server, ending, conduct.telling, patience, given=to_give)

    conduct = Conduct(context, url, telling_of(as_json=as_json, events=wait is None), key=used)
    raise typer.Exit(conduct.run(begin))


async def _question(server: Server, task_id: str, wanted: str | None, message_id: str) -> str:
    """Return the id of the question that is open; empty where the server has no ids for them.

    Raises `InvalidInput` when nothing is asked, or several things are. An answer that was given already, under the
    same key, is let through to where it was.
    """
    task = said_of_task(await server.task(task_id))
    if not server.numbers:
        if task.state not in ASKING:
            raise _asks_nothing(task_id, task.state)
        return wanted or ""
    questions = _Questions(message_id)
    async with aclosing(server.subscribe(task_id, 0)) as responses:
        async for response in responses:
            said = said_in(response)
            questions.take(said)
            if (said.number or 0) >= (task.number or 0):
                break
    if questions.answered:
        return questions.answered
    asked = list(questions.asked)
    if wanted is not None and wanted not in asked:
        raise InvalidInput("--question", f"{wanted!r} is not open; open: {', '.join(asked) or 'none'}")
    if not asked:
        raise _asks_nothing(task_id, task.state)
    if wanted is None and len(asked) > 1:
        raise InvalidInput("--question", f"is missing: the task asks several; give one of {', '.join(asked)}")
    return wanted or asked[0]


class _Questions:
    """The open questions of a task, in order, and the one that this very message has answered already."""

    def __init__(self, message_id: str) -> None:
        self.asked: dict[str, None] = {}
        self.answered = ""
        self._message_id = message_id

    def take(self, said: Said) -> None:
        help_id = str(said.data.get("help_id", ""))
        match said.kind:
            case "help.requested":
                self.asked[help_id] = None
            case "help.answered" | "help.closed":
                self.asked.pop(help_id, None)
                if said.data.get("message_id") == self._message_id:
                    self.answered = help_id


def _asks_nothing(task_id: str, state: str) -> InvalidInput:
    fix = "start a new one" if state in TERMINAL else "`perdure send --task` gives it a message"
    return InvalidInput("TASK", f"{task_id} is {state} and asks nothing; {fix}")
