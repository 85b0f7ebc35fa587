"""What a client is shown of a reply while the model writes it: chunks of the artifact that the reply becomes.

A draft is shown only for the attempt that the log says is under way, and from its first character on. So a retried
attempt begins the artifact anew (`append` false) in place of what the cut-off one had said, and what an attempt says
that has lost its turn is not shown at all. The reply in the log comes as the whole artifact and ends it. Where there is
no such artifact (the reply asks for tools, or the run was stopped), the draft is taken back: the artifact becomes
empty.

Chunks have no number and no SSE id: they are no events, and whoever reconnects gets the task without them. Nothing is
kept for a client but how many characters it has: one that reads slowly gets longer chunks.
"""

from a2a.types.a2a_pb2 import TaskArtifactUpdateEvent
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.a2a.translate import TaskView, Update, answer_artifact
from perdure.core.deltas import Draft


class Drafting:
    """One client's share in the draft of a task."""

    def __init__(self, view: TaskView) -> None:
        self._view = view
        self._shown: Draft | None = None

    def chunk(self, draft: Draft | None) -> TaskArtifactUpdateEvent | None:
        """Return what the client lacks of the draft, None where it lacks nothing."""
        if draft is None or draft[:2] != self._view.calling:
            return None
        has = self._shown.text if self._shown is not None and self._shown[:2] == draft[:2] else ""
        if len(draft.text) <= len(has):
            return None
        self._shown = draft
        return self._update(draft, draft.text[len(has) :], append=bool(has))

    def settled(self, update: Update) -> TaskArtifactUpdateEvent | None:
        """Look at the update of an event; return how a draft that it leaves behind is taken back."""
        kind = extension.asked(update.metadata).get("kind")
        shown = self._shown
        if shown is None or kind not in {"model.answered", "run.ended"}:
            return None
        self._shown = None
        whole = isinstance(update, TaskArtifactUpdateEvent)
        return None if whole else self._update(shown, "", append=False, last=True)

    def _update(self, draft: Draft, text: str, *, append: bool, last: bool = False) -> TaskArtifactUpdateEvent:
        update = TaskArtifactUpdateEvent(
            task_id=self._view.task_id,
            context_id=self._view.context_id,
            artifact=answer_artifact(draft.turn, text),
            append=append,
            last_chunk=last,
        )
        fields: dict[str, JsonValue] = {"kind": "draft", "turn": draft.turn, "attempt": draft.attempt}
        extension.put(update.metadata, fields)
        return update
