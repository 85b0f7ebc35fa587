"""What a conversation is made of: messages, model replies, tool calls and their results.

All are frozen and stored as the canonical JSON of their fields (`digests.body_of`). An *entry* is one piece of a
transcript; its digest names it, and the workflow's order of digests is the transcript.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer


class Frozen(BaseModel):
    """A value: immutable, and strict about unknown fields so that a typo is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- parts ------------------------------------------------------------------------------------------------------


class TextPart(Frozen):
    """Plain text."""

    kind: Literal["text"] = "text"
    text: str


class FilePart(Frozen):
    """A file or image, by the digest of a blob in the store or by a URL that the model's provider fetches."""

    kind: Literal["file"] = "file"
    media_type: str
    name: str | None = None
    blob: str | None = None
    url: str | None = None


class DataPart(Frozen):
    """Structured data, shown to the model as JSON."""

    kind: Literal["data"] = "data"
    data: JsonValue


class InlineFile(Frozen):
    """A small file that a tool hands over, with its bytes in base64."""

    kind: Literal["inline"] = "inline"
    media_type: str
    name: str | None = None
    base64: str


Part = Annotated[TextPart | FilePart | DataPart, Field(discriminator="kind")]

Lane = Literal["steer", "queue"]


class Message(Frozen):
    """What a person or a calling agent said. `message_id` is the sender's and makes a resend recognisable (P1).

    `envelope` is what the sender's protocol carried around the parts' contents, as its JSON, to be given back whole.
    """

    message_id: str
    parts: tuple[Part, ...]
    envelope: dict[str, JsonValue] | None = None

    @model_serializer(mode="wrap")
    def _as_before_envelopes(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out an envelope that is not there: a digest is for ever, also that of a message without one."""
        body: dict[str, Any] = handler(self)
        if self.envelope is None:
            body.pop("envelope", None)
        return body

    @property
    def text(self) -> str:
        """The text parts, joined by new lines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


# --- a model's reply --------------------------------------------------------------------------------------------


class Usage(Frozen):
    """Tokens of one or more model calls, as the provider counted them; cost in US dollars when a price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class ToolCall(Frozen):
    """A call that a model asked for. `call_id` is the model's and may repeat in later turns; keys never use it.

    `arguments` is the parsed object; when what the model wrote was not a JSON object it is None and `malformed`
    holds the (cut) original.
    """

    call_id: str
    tool: str
    arguments: dict[str, JsonValue] | None
    malformed: str | None = None


Finish = Literal["stop", "length", "refusal"]


class ModelReply(Frozen):
    """One answer of a model: text, calls, how it ended.

    `native` is the provider's own form of the answer (thinking signatures and the like), kept to be given back
    unchanged to the same provider in later turns; `native_format` names the codec that wrote it.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    native: JsonValue = None
    native_format: str = ""


# --- a tool's result --------------------------------------------------------------------------------------------

ResultStatus = Literal["ok", "error", "unknown", "not_begun"]


class HandedOver(Frozen):
    """What a tool's result is for whoever gave the task, beside what the model is told."""

    name: str
    parts: tuple[Annotated[TextPart | FilePart | DataPart | InlineFile, Field(discriminator="kind")], ...]


class ToolResult(Frozen):
    """What the model is told of one call (R14: each call has exactly one).

    `unknown` is the honest "outcome unknown" (P4). `text` is what is shown; `blob` is the digest of the whole when
    the text was cut. `handed_over` goes to whoever gave the task, `files` are what was kept of the result beside it.
    """

    call_id: str
    tool: str
    status: ResultStatus
    text: str
    blob: str | None = None
    handed_over: HandedOver | None = None
    files: tuple[FilePart, ...] = ()

    @model_serializer(mode="wrap")
    def _as_before_artifacts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not there: a digest is for ever, also that of a result from before there were any."""
        body: dict[str, Any] = handler(self)
        if self.handed_over is None:
            body.pop("handed_over", None)
        if not self.files:
            body.pop("files", None)
        return body


# --- transcript entries -----------------------------------------------------------------------------------------


class UserEntry(Frozen):
    """A promoted message."""

    kind: Literal["user"] = "user"
    message: Message


class ModelEntry(Frozen):
    """A recorded model reply."""

    kind: Literal["model"] = "model"
    reply: ModelReply


class ToolEntry(Frozen):
    """The result of one call."""

    kind: Literal["tool"] = "tool"
    result: ToolResult


Entry = Annotated[UserEntry | ModelEntry | ToolEntry, Field(discriminator="kind")]
EntryKind = Literal["user", "model", "tool"]
