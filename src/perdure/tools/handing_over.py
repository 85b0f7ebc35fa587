"""An artifact that a tool returned, as it is recorded, and what the model is told of it.

All of this runs after the effect, like `results.py`, and by the same rule: nothing here turns a call that ended
into one that failed. What cannot be handed over is not, and the model is told so.
"""

import base64

from pydantic import JsonValue

from perdure.core import limits
from perdure.core.artifacts import Artifact, File
from perdure.core.content import DataPart, FilePart, HandedOver, InlineFile, TextPart
from perdure.core.digests import body_of, canonical, safe_json, safe_text


def handed_over(artifact: Artifact) -> tuple[HandedOver | None, str]:
    """Return the recorded form, None where there can be none, and what the model is told."""
    name = "artifact"
    try:
        name = safe_text(artifact.name) or name
        made = HandedOver(name=name, parts=tuple(_part(part) for part in artifact.parts))
        size = len(canonical(body_of(made)))
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return None, f"The call ended, but {name} could not be handed over: {error}."
    if not made.parts:
        return None, f"The call ended, but {name} has no parts and was not handed over."
    if size > limits.ARTIFACT_BYTES_MAX:
        return None, (
            f"The call ended, but {name} was not handed over: it has {size} bytes, at most {limits.ARTIFACT_BYTES_MAX} "
            "are taken. Larger ones are handed over by URL."
        )
    return made, artifact.text or f"Handed over to whoever asked: {name} ({', '.join(map(_told, made.parts))})."


def _part(part: File | JsonValue) -> TextPart | DataPart | FilePart | InlineFile:
    match part:
        case File(url=str() as url):
            return FilePart(media_type=safe_text(part.media_type), name=safe_text(part.name) or None, url=url)
        case File(data=bytes() as data):
            return InlineFile(
                media_type=safe_text(part.media_type),
                name=safe_text(part.name) or None,
                base64=base64.b64encode(data).decode(),
            )
        case str():
            return TextPart(text=safe_text(part))
        case File():
            raise ValueError(f"its file {part.name!r} has neither bytes nor a URL")
        case _:
            return DataPart(data=safe_json(part))


def _told(part: TextPart | DataPart | FilePart | InlineFile) -> str:
    match part:
        case FilePart() | InlineFile():
            return f"{part.name or 'a file'}, {part.media_type}"
        case TextPart():
            return "a text"
        case _:
            return "data"
