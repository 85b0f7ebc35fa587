"""How a file of a message reaches a model.

Text files are written into the prompt, between marks that their author cannot forge because they carry the file's
digest; every model takes them. Images, documents, audio and video go as themselves to a model that takes their kind,
by what pydantic-ai's profile of it says.

A model that does not take a file gets a sentence that names it instead. Failing the call was refused: the file is
part of the transcript for good, so every later turn of the task would fail with it, while a model that knows of the
file can tell the person that it cannot open it.
"""

from typing import get_args

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentMediaType,
    DocumentUrl,
    ImageUrl,
    UserContent,
    VideoUrl,
)
from pydantic_ai.profiles import ModelProfile

from perdure.core.content import FilePart
from perdure.core.digests import safe_text
from perdure.core.errors import StoreBehind
from perdure.core.ports import BlobReader

_KNOWN_DOCUMENTS: frozenset[str] = frozenset(get_args(DocumentMediaType))
_TEXT_APPLICATIONS = frozenset({"json", "xml", "yaml", "x-yaml", "toml", "javascript", "sql", "x-sh"})
_AUDIO_EVERYWHERE = frozenset({"audio/wav", "audio/mpeg"})
"""What every model that takes audio at all takes; the SDKs' adapters assert on others."""


async def file_content(part: FilePart, profile: ModelProfile, blobs: BlobReader) -> UserContent:
    """Return what is sent for a file: itself, its text, or a sentence in its place.

    Raises:
        StoreBehind: the store does not have the blob that the message refers to.
    """
    media_type = part.media_type.split(";", 1)[0].strip().lower()
    if part.blob is not None:
        if not _is_text(media_type) and (refusal := _not_taken(media_type, profile)):
            return _stand_in(part, refusal)
        data = await _read(part.blob, blobs)
        if not _is_text(media_type):
            return BinaryContent(data=data, media_type=media_type)
        try:
            return _inlined(part, part.blob, data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return _stand_in(part, "it is not text in UTF-8")
    if part.url is not None:
        refusal = _not_taken(media_type, profile)
        return _stand_in(part, refusal) if refusal else _by_url(part.url, media_type)
    return _stand_in(part, "the message holds neither its bytes nor its URL")


async def _read(digest: str, blobs: BlobReader) -> bytes:
    try:
        return await blobs(digest)
    except KeyError as missing:
        raise StoreBehind(f"blob {digest} of a stored message is missing from the store") from missing


def _by_url(url: str, media_type: str) -> UserContent:
    match media_type.split("/", 1)[0]:
        case "image":
            return ImageUrl(url, media_type=media_type)
        case "audio":
            return AudioUrl(url, media_type=media_type)
        case "video":
            return VideoUrl(url, media_type=media_type)
        case _:
            return DocumentUrl(url, media_type=media_type)


def _not_taken(media_type: str, profile: ModelProfile) -> str | None:
    """Say why the model cannot take this kind of file, or None."""
    match media_type.split("/", 1)[0]:
        case "image":
            return None if profile.get("supports_image_input", True) else "this model takes no images"
        case "audio":
            if not profile.get("supports_audio_file_input", True):
                return "this model takes no audio"
            return None if media_type in _AUDIO_EVERYWHERE else "only WAV and MP3 audio can be sent"
        case "video":
            return None if profile.get("supports_video_input", True) else "this model takes no video"
        case _:
            taken = profile.get("supported_document_media_types", _KNOWN_DOCUMENTS)
            if profile.get("supports_document_input", True) and media_type in taken:
                return None
            return f"this model takes no files of type {media_type}"


def _is_text(media_type: str) -> bool:
    kind, _, subtype = media_type.partition("/")
    return kind == "text" or (
        kind == "application" and (subtype in _TEXT_APPLICATIONS or subtype.endswith(("+json", "+xml", "+yaml")))
    )


def _label(part: FilePart) -> str:
    name = safe_text(part.name or "without a name").replace('"', "'").replace("\n", " ")
    return f'"{name}" ({part.media_type})'


def _inlined(part: FilePart, digest: str, text: str) -> str:
    mark = digest[:16]
    return f"[file {mark} {_label(part)}]\n{safe_text(text)}\n[end of file {mark}]"


def _stand_in(part: FilePart, reason: str) -> str:
    where = f", at {safe_text(part.url)}" if part.url else ""
    return f"[A file was attached here, {_label(part)}{where}, but its content is not shown: {reason}.]"
