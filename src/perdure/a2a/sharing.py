"""Who may see a task beside its owner: the principals that its first message names (`sharedWith`).

They see it as its owner does (GetTask, SubscribeToTask, ListTasks) and change nothing: to send, to cancel and to push
are its owner's. Who may do more needs an account of what it may, which a list of names is not; and a push configuration
holds its owner's secrets. To everybody else the task is not there, as ever.

The names stand in the task's start, and are as final as its owner. Refused: to share a task later. It would be a change
of the task that its workflow knows nothing of, and could come while somebody reads.
"""

from typing import Final

from a2a.types.a2a_pb2 import SendMessageRequest
from a2a.utils.errors import A2AError

from perdure.a2a import extension
from perdure.a2a.caller import Caller
from perdure.a2a.errors import invalid
from perdure.a2a.refusals import PermissionDeniedError
from perdure.core import door_limits, limits
from perdure.core.digests import safe_text
from perdure.core.log import TaskHeader

FIELD: Final = "message.metadata.sharedWith"


def shared_with(request: SendMessageRequest, caller: Caller) -> tuple[str, ...]:
    """Return whom a first message names, each once and in order; raises A2A's InvalidParamsError for what is no name.

    So it does for a further message that names anybody, and where nobody is asked who they are.
    """
    given = extension.asked(request.message.metadata).get("sharedWith")
    if given is None:
        return ()
    if request.message.task_id:
        raise invalid(FIELD, "comes with a task's first message only; leave it out, or give a new task")
    if not caller.principal:
        raise invalid(FIELD, "names principals, but nobody is asked here who they are; leave it out")
    if not isinstance(given, list) or len(given) > door_limits.SHARED_WITH_MAX:
        raise invalid(FIELD, f"must be a list of at most {door_limits.SHARED_WITH_MAX} principals")
    names: dict[str, None] = {}
    for each in given:
        if not isinstance(each, str) or not _is_name(each):
            raise invalid(
                FIELD, f"each must have 1 to {limits.PRINCIPAL_CHARS_MAX} printable characters, none around them"
            )
        names[each] = None
    names.pop(caller.principal, None)
    return tuple(names)


def may_see(header: TaskHeader, caller: Caller) -> bool:
    """Whether the task is there for the caller."""
    return caller.principal == header.principal or is_reader(header, caller)


def is_reader(header: TaskHeader, caller: Caller) -> bool:
    """Whether the caller may see the task and do nothing else with it."""
    return caller.principal != header.principal and caller.principal in header.shared_with


def only_to_read(task_id: str) -> A2AError:
    """Return the refusal of whoever sees the task and wants more."""
    return PermissionDeniedError(
        f"task {task_id!r} is shared with you to be read; only who gave it sends to it, cancels it or has it pushed"
    )


def _is_name(name: str) -> bool:
    plain = safe_text(name) == name and name.isprintable() and name.strip() == name
    return plain and 0 < len(name) <= limits.PRINCIPAL_CHARS_MAX
