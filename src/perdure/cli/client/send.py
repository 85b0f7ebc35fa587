"""`perdure send`: give a served agent a message and stay until its run has ended.

The message is never given twice by accident, whatever breaks on the way (`following.py`), and the command ends on its
own run's end (`ends.py`).
"""

from typing import Annotated

import typer

from perdure.cli.client.conduct import PATIENCE_S, AsJson, Conduct, PatienceS, Url, words_of
from perdure.cli.client.ends import MessageEnd, StateEnd
from perdure.cli.client.following import Follower
from perdure.cli.client.giving import given, message_id_of, usable_key
from perdure.cli.client.patience import Patience
from perdure.cli.client.server import Server
from perdure.cli.client.telling import telling_of
from perdure.core.content import Lane

Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait",
        help="--wait shows nothing but the answer; --no-wait ends as soon as the message is taken in, and prints the "
        "task. Without either the task's events are shown as they come.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="The idempotency key. The same message under the same key is the same message, however often it is sent. "
        "Without it there is a new one each time.",
    ),
]


def send(
    context: typer.Context,
    url: Url,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="What the agent is told.")],
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="A task that goes on with it, instead of a new one.")
    ] = None,
    context_id: Annotated[
        str | None, typer.Option("--context", metavar="CONTEXT", help="The context of a new task.")
    ] = None,
    lane: Annotated[
        Lane | None,
        typer.Option(
            "--lane",
            help="steer: join the task's run at its next turn. queue: wait until what came before is answered. Without "
            "it steer while a run is open.",
            show_default=False,
        ),
    ] = None,
    key: Key = None,
    wait: Wait = None,
    patience_s: PatienceS = PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Give a served agent a message, show what happens, print its answer.

    Works with any A2A server. With one of Perdure's it goes on after every
    loss of the connection, misses no event, and ends on the end of the run
    that this message was part of: exit code 1 and the reason when that left
    no answer, also when the agent asks something (see `perdure answer`).
    """
    words = words_of("MESSAGE", message)
    used = usable_key(key)

    async def begin(server: Server) -> Follower:
        to_give = given(words, used, task_id=task or "", context_id=context_id or "", lane=lane, at_once=wait is False)
        ending = MessageEnd(message_id_of(used)) if server.numbers else StateEnd(sent=True)
        return Follower(server, ending, conduct.telling, Patience(patience_s), given=to_give)

    conduct = Conduct(context, url, telling_of(as_json=as_json, events=wait is None), key=used)
    raise typer.Exit(conduct.run(begin))
