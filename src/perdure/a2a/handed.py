"""What a tool handed over, as an artifact of the task. Pure."""

import base64

from a2a.types.a2a_pb2 import Artifact, Part
from google.protobuf.json_format import Parse
from google.protobuf.struct_pb2 import Value

from perdure.core.content import DataPart, FilePart, InlineFile, TextPart, ToolEntry
from perdure.core.digests import canonical
from perdure.core.ports import StoredEvent


def handed_over(stored: StoredEvent) -> Artifact | None:
    """Return the artifact that comes with this event, if one does; its id is that of the call that made it."""
    event, subject = stored.event, stored.subject
    if event.kind != "tool.finished" or not isinstance(subject, ToolEntry) or subject.result.handed_over is None:
        return None
    given = subject.result.handed_over
    made_by = f"turn-{event.turn}-{event.data.get('index', 0)}"
    return Artifact(artifact_id=made_by, name=given.name, parts=[_part(part) for part in given.parts])


def _part(part: TextPart | DataPart | FilePart | InlineFile) -> Part:
    match part:
        case TextPart(text=text):
            return Part(text=text)
        case DataPart(data=data):
            return Part(data=Parse(canonical(data), Value()))
        case FilePart():
            return Part(url=part.url or "", media_type=part.media_type, filename=part.name or "")
        case InlineFile():
            raw = base64.b64decode(part.base64)
            return Part(raw=raw, media_type=part.media_type, filename=part.name or "")
