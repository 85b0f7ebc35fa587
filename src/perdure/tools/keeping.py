"""What of a call's end is kept beside its row: the bytes of files, and what a tool wants back with a person's answer.

Both go to the store as blobs before the row that names them, so that no row names what is not there.
"""

from typing import Final, NamedTuple

from perdure.core import asking_limits, limits
from perdure.core.artifacts import Asks, File, WithFiles
from perdure.core.content import FilePart, Frozen, HandedOver
from perdure.core.digests import body_of, canonical, cut_text, safe_text
from perdure.core.errors import StoreBehind
from perdure.core.ports import Execution, Store
from perdure.tools.handing_over import handed_over

JSON_TYPE: Final = "application/json"


class Question(Frozen):
    """What a call asked, as it is kept: its digest names it in the ledger and in the task."""

    asks: Asks


class Told(NamedTuple):
    """A result with files, as it is recorded."""

    text: str
    files: tuple[FilePart, ...]
    handed_over: HandedOver | None


async def keep_question(store: Store, asks: Asks) -> str:
    """Keep what a call asked; return its digest."""
    return await store.put_blob(canonical(body_of(Question(asks=asks))), JSON_TYPE)


async def kept_question(store: Store, digest: str) -> Asks:
    """Return what a call asked; raises `StoreBehind` where the store does not have it."""
    try:
        data = await store.get_blob(digest)
    except KeyError as error:
        raise StoreBehind(f"P3: the store lacks the question {digest}, which its ledger names") from error
    return Question.model_validate_json(data).asks


def asking(digest: str, asks: Asks) -> Execution:
    """Return an attempt's end that puts a question to a person.

    Choices stand in the task's state and rows. A list that is too long for that is left out, and any words are taken:
    the tool has it whole, and judges.
    """
    question = cut_text(safe_text(asks.question), limits.QUESTION_BYTES_MAX, " [cut]")
    return Execution(outcome="asks", digest=digest, question=question, choices=_bounded(asks.choices), form=asks.form)


def _bounded(choices: tuple[str, ...]) -> tuple[str, ...]:
    fit = len(choices) <= asking_limits.CHOICES_MAX and all(
        len(choice) <= asking_limits.CHOICE_CHARS_MAX for choice in choices
    )
    return choices if fit else ()


async def keep_files(store: Store, given: WithFiles) -> Told:
    """Keep a result's files; return its text with a line for each, which says whether it was kept."""
    lines, parts = [given.text] if given.text else [], list[FilePart]()
    for file in given.files:
        part, line = await _keep(store, file)
        lines.append(line)
        if part is not None:
            parts.append(part)
    over = None
    if given.artifact is not None:
        over, said = handed_over(given.artifact)
        lines.append(said)
    return Told("\n".join(lines), tuple(parts), over)


async def _keep(store: Store, file: File) -> tuple[FilePart | None, str]:
    name, media_type = safe_text(file.name) or "file", safe_text(file.media_type)
    if file.data is None:
        return FilePart(media_type=media_type, name=name, url=file.url), f"[file {name}, {media_type}: {file.url}]"
    size = len(file.data)
    if size > limits.BLOB_BYTES_MAX:
        return None, f"[file {name}, {media_type}, {size} bytes: too large, not kept]"
    digest = await store.put_blob(file.data, media_type)
    return FilePart(media_type=media_type, name=name, blob=digest), f"[file {name}, {media_type}, {size} bytes: kept]"
