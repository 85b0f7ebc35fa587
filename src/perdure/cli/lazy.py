"""Commands that are imported when they are named, so that a small one does not wait for the SDKs of a large one."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "demo": "perdure.cli.demo.command:demo",
    "chaos": "perdure.cli.chaos.command:chaos",
    "init": "perdure.cli.init:init",
    "check": "perdure.cli.check:check",
    "run": "perdure.cli.run:run",
    "serve": "perdure.cli.serve:serve",
    "worker": "perdure.cli.worker:worker",
    "send": "perdure.cli.client.send:send",
    "watch": "perdure.cli.client.watch:watch",
    "answer": "perdure.cli.client.answer:answer",
    "cancel": "perdure.cli.client.cancel:cancel",
    "tasks": "perdure.cli.tasks:tasks",
    "show": "perdure.cli.show:show",
    "keys": "perdure.cli.keys:keys",
    "backup": "perdure.cli.backup:backup",
}
"""Name to function, or to a group of them, in the order in which help lists them."""


class LazyGroup(TyperGroup):
    """The root group: it knows its commands by name, and imports one when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands that this installation has."""
        return [name for name, where in COMMANDS.items() if _is_there(where.partition(":")[0])]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), name)
        if isinstance(found, typer.Typer):  # with commands of its own
            return typer.main.get_command(found)
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(cmd_name)(found)
        return typer.main.get_command(single)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
