"""`perdure watch`: follow a task of a served agent, from any of its events on, over every restart of the server."""

from typing import Annotated

import typer

from perdure.cli.client.conduct import PATIENCE_S, AsJson, Conduct, PatienceS, TaskId, Url
from perdure.cli.client.ends import StateEnd, TaskEnd
from perdure.cli.client.following import Follower
from perdure.cli.client.patience import Patience
from perdure.cli.client.server import Server
from perdure.cli.client.telling import telling_of


def watch(
    context: typer.Context,
    url: Url,
    task: TaskId,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="N", help="Show what came after event N; 0 shows everything.")
    ] = 0,
    patience_s: PatienceS = PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Show a task's events until it has ended or waits for its next message.

    A question to a person does not end it. While the server is away it is
    tried again, and the events go on after the last one that was seen.
    Exit code 1 when the last run left no answer.
    """

    async def begin(server: Server) -> Follower:
        ending = TaskEnd() if server.numbers else StateEnd(sent=False)
        return Follower(server, ending, conduct.telling, Patience(patience_s), task_id=task, after=after)

    conduct = Conduct(context, url, telling_of(as_json=as_json))
    raise typer.Exit(conduct.run(begin))
