"""Short questions to a transcript, for steps that depend on what was said before."""

from collections.abc import Sequence

from perdure.core.content import Entry, ModelEntry, ModelReply, ToolEntry, ToolResult, UserEntry


def replies(transcript: Sequence[Entry]) -> tuple[ModelReply, ...]:
    """Return the model's replies so far, oldest first."""
    return tuple(entry.reply for entry in transcript if isinstance(entry, ModelEntry))


def results(transcript: Sequence[Entry]) -> tuple[ToolResult, ...]:
    """Return the results of the latest reply's calls, in the order of the transcript; empty when there are none."""
    latest: list[ToolResult] = []
    for entry in transcript:
        if isinstance(entry, ModelEntry):
            latest.clear()
        elif isinstance(entry, ToolEntry):
            latest.append(entry.result)
    return tuple(latest)


def last_result(transcript: Sequence[Entry]) -> str:
    """Return the text of the latest tool result, or "" before the first."""
    texts = [entry.result.text for entry in transcript if isinstance(entry, ToolEntry)]
    return texts[-1] if texts else ""


def last_user(transcript: Sequence[Entry]) -> str:
    """Return the text of the latest message, or "" before the first."""
    texts = [entry.message.text for entry in transcript if isinstance(entry, UserEntry)]
    return texts[-1] if texts else ""
