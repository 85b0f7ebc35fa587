"""What a server's tool returned, as this package records it.

Structured content is the result; text that only repeats it is left out. Texts of resources stand between lines that say
where they begin and end, because what is in them is data and may pretend to be something else. Images, sound and files
are kept, and the model is told of them. What the server marks as meant for the user is handed over as well.

All of this runs after the effect: nothing here turns a call that ended into one that failed.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import NamedTuple

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import JsonValue

from perdure.core.artifacts import Artifact, File, WithFiles
from perdure.core.mcp_limits import MCP_FILES_MAX
from perdure.tools.environment import Environment


class _Piece(NamedTuple):
    """One block: what the model reads of it, and the file that it is."""

    text: str
    file: File | None = None
    for_user: bool = False


def returned(tool: str, given: CallToolResult) -> JsonValue | WithFiles:
    """Return a result's value: plain where it is plain, with its files where it has some."""
    structured = _unwrapped(given)
    pieces = [_piece(block, number) for number, block in enumerate(given.content, 1)]
    if structured is not None:
        pieces = [piece for piece in pieces if piece.file is not None or not _repeats(piece.text, structured)]
    if not pieces:
        return structured
    if structured is None and len(pieces) == 1 and pieces[0].file is None and not pieces[0].for_user:
        return pieces[0].text
    texts = [] if structured is None else [json.dumps(structured, ensure_ascii=False)]
    texts += [piece.text for piece in pieces if piece.text]
    files = tuple(piece.file for piece in pieces if piece.file is not None)
    for_user = [piece.file or piece.text for piece in pieces if piece.for_user]
    if len(files) > MCP_FILES_MAX:
        texts.append(f"[{len(files) - MCP_FILES_MAX} more files were not kept]")
    artifact = Artifact(tool, *for_user) if for_user else None
    if not files and artifact is None:
        return "\n".join(texts)
    return WithFiles("\n".join(texts), files[:MCP_FILES_MAX], artifact)


def masked(value: JsonValue | WithFiles, environment: Environment) -> JsonValue | WithFiles:
    """Return a value without secrets, in what is handed over too; the bytes of files are kept as they are."""
    if not isinstance(value, WithFiles):
        return environment.masked_json(value)
    files = tuple(_masked_file(each, environment) for each in value.files)
    over = value.artifact
    if over is not None:
        parts = [
            _masked_file(each, environment) if isinstance(each, File) else environment.masked_json(each)
            for each in over.parts
        ]
        over = Artifact(environment.masked(over.name), *parts, text=environment.masked(over.text))
    return WithFiles(environment.masked(value.text), files, over)


def _masked_file(file: File, environment: Environment) -> File:
    url = None if file.url is None else environment.masked(file.url)
    return File(environment.masked(file.media_type), environment.masked(file.name), file.data, url)


def text_of(blocks: Iterable[ContentBlock]) -> str:
    """Return the words of a result, for an error or a prompt; files are only named."""
    pieces = [_piece(block, number) for number, block in enumerate(blocks, 1)]
    named = [piece.text or (f"[{piece.file.name}]" if piece.file is not None else "") for piece in pieces]
    return "\n".join(text for text in named if text)


def resource(contents: TextResourceContents | BlobResourceContents, number: int = 1) -> WithFiles | str:
    """Return what a resource holds: its text between lines that name it, or a file."""
    if isinstance(contents, TextResourceContents):
        return _quoted(contents)
    file = _file(contents.blob, contents.mime_type or "application/octet-stream", _name(contents.uri, number))
    return WithFiles("", (file,)) if file is not None else f"[{contents.uri} is no base64 and was not kept]"


def _piece(block: ContentBlock, number: int) -> _Piece:
    for_user = bool(block.annotations and block.annotations.audience and "user" in block.annotations.audience)
    match block:
        case TextContent(text=text):
            return _Piece(text, None, for_user)
        case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
            file = _file(data, kind, f"{block.type}-{number}")
            return _Piece("", file, for_user) if file else _Piece(f"[{block.type} {number} is no base64]")
        case ResourceLink(uri=uri, name=name, mime_type=kind):
            about = ", ".join(each for each in (kind, block.description) if each)
            return _Piece(f"[resource {name}: {uri}{f' ({about})' if about else ''}]", None, False)
        case EmbeddedResource(resource=held):
            made = resource(held, number)
            return _Piece(made, None, for_user) if isinstance(made, str) else _Piece("", made.files[0], for_user)


def _quoted(contents: TextResourceContents) -> str:
    kind = f" ({contents.mime_type})" if contents.mime_type else ""
    return f"--- resource {contents.uri}{kind} ---\n{contents.text}\n--- end of {contents.uri} ---"


def _file(data: str, media_type: str, name: str) -> File | None:
    try:
        return File(media_type, name, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None


def _name(uri: str, number: int) -> str:
    return uri.rstrip("/").rpartition("/")[2] or f"file-{number}"


def _unwrapped(given: CallToolResult) -> JsonValue:
    """Return the structured content; a text that is in an object only because the protocol once wanted one, alone."""
    structured: JsonValue = given.structured_content
    if isinstance(structured, dict) and set(structured) == {"result"}:
        texts = [block.text for block in given.content if isinstance(block, TextContent)]
        if texts == [structured["result"]]:
            return structured["result"]
    return structured


def _repeats(text: str, structured: JsonValue) -> bool:
    """Whether a text is the structured content once more, or the one value in it."""
    held = [structured]
    if isinstance(structured, dict) and set(structured) == {"result"}:
        held.append(structured["result"])
    try:
        return text in held or json.loads(text) in held
    except (ValueError, RecursionError):
        return False
