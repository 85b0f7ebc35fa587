"""Contexts as listed: groups of tasks, ordered by what happened in them last."""

from perdure.core.content import Frozen


class ContextRow(Frozen):
    """A context; `newest_task_revision` is read at query time and orders lists."""

    context_id: str
    principal: str
    revision: int
    newest_task_revision: int
