"""`perdure answer`: answer the question of a task of a served agent, and stay until its run has ended.

An answer is a message that says which question it is for. The question is looked up first, so that a text which was
meant as an answer never becomes an order of its own: not when nobody asked, and not when somebody else has answered.
Nor does a decision about a call become the answer to a question that took the call's place.
"""

from contextlib import aclosing
from dataclasses import dataclass, replace
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
from perdure.cli.questions import Question, answer_to, approval, edited, fields_of
from perdure.cli.timeline import one_line
from perdure.core.digests import canonical
from perdure.core.errors import InvalidInput


def answer(
    context: typer.Context,
    url: Url,
    task: TaskId,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT|NAME=VALUE…]", help="The answer, or the fields of a form.")
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Let the call begin that waits.")] = False,
    decline: Annotated[
        str | None, typer.Option("--decline", metavar="REASON", help="Decline the call; the model is told why.")
    ] = None,
    edit: Annotated[
        str | None, typer.Option("--edit", metavar="JSON", help="Let the call begin with these arguments instead.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON", help="The answer to a form, as a JSON object.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", metavar="ID", help="Which question, where the task asks several.")
    ] = None,
    key: Key = None,
    wait: Wait = None,
    patience_s: PatienceS = PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Answer a task's question, show what follows, print the agent's answer."""
    said = _Said(tuple(text or ()), approve=approve, decline=decline, edit=edit, data=data)
    used = usable_key(key)

    async def begin(server: Server) -> Follower:
        patience = Patience(patience_s)
        asked = await patiently(patience, lambda: _question(server, task, question, message_id_of(used)))
        to_give = given(said.to(asked), used, task_id=task, help_id=asked.help_id, at_once=wait is False)
        ending = MessageEnd(message_id_of(used)) if server.numbers else StateEnd(sent=True)
        return Follower(server, ending, conduct.telling, patience, given=to_give)

    conduct = Conduct(context, url, telling_of(as_json=as_json, events=wait is None), key=used)
    raise typer.Exit(conduct.run(begin))


@dataclass(frozen=True)
class _Said:
    """What was given on the command line; one of the ways to answer, or `InvalidInput`."""

    words: tuple[str, ...]
    approve: bool
    decline: str | None
    edit: str | None
    data: str | None

    def __post_init__(self) -> None:
        given = [bool(self.words), self.approve, *(each is not None for each in (self.decline, self.edit, self.data))]
        if sum(given) != 1:
            problem = "give one answer: TEXT, NAME=VALUE…, --data, --approve, --decline or --edit"
            raise InvalidInput("TEXT", problem)
        if self.words:
            words_of("TEXT", " ".join(self.words))
        for field, text in (("--edit", self.edit), ("--data", self.data)):
            if text is not None:
                edited(text, field)

    def to(self, question: Question) -> str:
        """Return it as an answer to this question; raises `InvalidInput` for a decision about what is no call."""
        decides = {"--approve": self.approve, "--decline": self.decline is not None, "--edit": self.edit is not None}
        if any(decides.values()) and not question.digest and not question.untold:
            flag = next(name for name, given in decides.items() if given)
            text = f": {one_line(question.text)!r}" if question.text else ""
            problem = f"is for a call that waits, and {question.help_id} is a question{text}"
            raise InvalidInput(flag, f"{problem}; give the answer as TEXT, NAME=VALUE… or --data")
        if self.approve:
            return approval(question.digest)
        if self.decline is not None:
            return canonical({"approve": False, "reason": self.decline}).decode()
        if self.edit is not None:
            return approval(question.digest, arguments=edited(self.edit, "--edit"))
        if self.data is not None:
            return canonical(edited(self.data, "--data")).decode()
        if question.form is not None and all("=" in word for word in self.words):
            return fields_of(question.form, self.words)
        return answer_to(question, " ".join(self.words))


async def _question(server: Server, task_id: str, wanted: str | None, message_id: str) -> Question:
    """Return the question that is open; one without an id where the server has none for them.

    Raises `InvalidInput` when nothing is asked, or several things are. An answer that was given already, under the
    same key, is let through to where it was.
    """
    task = said_of_task(await server.task(task_id))
    if not server.numbers:
        if task.state not in ASKING:
            raise _asks_nothing(task_id, task.state)
        return Question(wanted or "", task.text, untold=True)
    questions = _Questions(message_id)
    async with aclosing(server.subscribe(task_id, 0)) as responses:
        async for response in responses:
            said = said_in(response)
            questions.take(said)
            if (said.number or 0) >= (task.number or 0):
                break
    if questions.answered is not None:
        return questions.answered
    asked = list(questions.asked)
    if wanted is not None and wanted not in asked:
        raise InvalidInput("--question", f"{wanted!r} is not open; open: {', '.join(asked) or 'none'}")
    if not asked:
        raise _asks_nothing(task_id, task.state)
    if wanted is None and len(asked) > 1:
        raise InvalidInput("--question", f"is missing: the task asks several; give one of {', '.join(asked)}")
    found = questions.asked[wanted or asked[0]]
    return replace(found, text=task.text) if not found.text and len(asked) == 1 else found


class _Questions:
    """The open questions of a task, in order, and the one that this very message has answered already."""

    def __init__(self, message_id: str) -> None:
        self.asked: dict[str, Question] = {}
        self.answered: Question | None = None
        self._message_id = message_id

    def take(self, said: Said) -> None:
        help_id = str(said.data.get("help_id", ""))
        match said.kind:
            case "help.requested":
                self.asked[help_id] = Question.of(said.data, said.text)
            case "help.answered" | "help.closed":
                question = self.asked.pop(help_id, None)
                if said.data.get("message_id") == self._message_id:
                    self.answered = question


def _asks_nothing(task_id: str, state: str) -> InvalidInput:
    fix = "start a new one" if state in TERMINAL else "`perdure send --task` gives it a message"
    return InvalidInput("TASK", f"{task_id} is {state} and asks nothing; {fix}")
