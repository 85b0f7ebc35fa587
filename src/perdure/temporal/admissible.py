"""What a task takes in, and how it says no: checked before a message becomes an event."""

from temporalio.exceptions import ApplicationError

from perdure.core.bounds import Bounds
from perdure.core.content import DataPart, Message, TextPart, UserEntry
from perdure.core.digests import body_of, canonical, digest, safe_text
from perdure.core.errors import InvalidInput, PerdureError
from perdure.core.machine import meant_by, not_open, refuse_late_word
from perdure.core.state import HelpRequest, TaskState
from perdure.temporal.contracts import InboxItem


def message_digest(message: Message) -> str:
    """Return the digest that names a message's content: that of its transcript entry."""
    return digest(body_of(UserEntry(message=message)))


def refuse_unstorable(message: Message, bounds: Bounds) -> None:
    """Raise for a message that no store takes: once admitted it would hold up every later write of its task."""
    name = message.message_id
    if not 0 < len(name) <= bounds.message_id_chars_max or safe_text(name) != name:
        problem = f"must have 1 to {bounds.message_id_chars_max} characters, no NUL and no lone surrogate among them"
        raise InvalidInput("message_id", problem)
    if len(message.parts) > bounds.message_parts_max:
        raise InvalidInput("parts", f"are {len(message.parts)}, at most {bounds.message_parts_max} are taken")
    try:
        message_digest(message)
    except ValueError as error:
        raise InvalidInput("parts", f"hold what is not JSON in UTF-8 ({error})") from error


def refusal(error: PerdureError) -> ApplicationError:
    """Turn a refusal into an update's failure; its type is the error's code."""
    return ApplicationError(str(error), type=error.code, non_retryable=True)


def question_for(state: TaskState, item: InboxItem) -> HelpRequest | None:
    """Return the open question that a message answers; None for one that answers none.

    Questions of a run that winds down close with it, answered or not: what comes meanwhile is a message of its own, or
    it would be lost with them. A decision about a call that does not wait (any more) is none: it is refused.
    """
    open_now = () if state.run is not None and state.run.ending is not None else state.help
    if not item.answers:
        return None
    if item.help_id is None:
        if open_now:
            return meant_by(state, open_now, words_of(item.message))
        refuse_late_word(state, open_now, _joined(item.message))
        return None
    for request in open_now:
        if item.help_id == request.help_id:
            return request
    raise not_open(state, item.help_id, open_now)


def words_of(message: Message) -> str:
    """Return a message as the words of an answer; raises `InvalidInput` for one that holds what is no words."""
    if not all(isinstance(part, TextPart | DataPart) for part in message.parts):
        raise InvalidInput("parts", "a question is answered in words; send files in a message after it")
    return _joined(message)


def _joined(message: Message) -> str:
    """Return the words of a message, without its files."""
    words: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                words.append(text)
            case DataPart(data=data):
                words.append(canonical(data).decode())
    return safe_text("\n".join(words))
