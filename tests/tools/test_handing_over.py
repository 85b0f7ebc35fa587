"""What a tool hands over: how it is recorded, and what the model is told; after the effect nothing fails."""

import pytest
from pydantic import JsonValue

from perdure import Artifact, File
from perdure.core import limits
from perdure.core.content import DataPart, FilePart, InlineFile, TextPart, ToolEntry, ToolResult
from perdure.core.digests import body_of, digest
from perdure.tools.handing_over import handed_over


def test_every_kind_of_part() -> None:
    given, told = handed_over(
        Artifact(
            "report",
            "all is well\x00",
            {"n": [1, None]},
            File("text/plain", name="a.txt", data=b"tck"),
            File("image/png", url="https://example.org/a.png"),
        )
    )
    assert given is not None
    assert given.parts == (
        TextPart(text="all is well\ufffd"),
        DataPart(data={"n": [1, None]}),
        InlineFile(media_type="text/plain", name="a.txt", base64="dGNr"),
        FilePart(media_type="image/png", url="https://example.org/a.png"),
    )
    assert told == "Handed over to whoever asked: report (a text, data, a.txt, text/plain, a file, image/png)."
    assert handed_over(Artifact("report", "x", text="Tell them."))[1] == "Tell them."


def _nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("artifact", "why"),
    [
        (Artifact("empty"), "has no parts"),
        (Artifact("large", File("text/plain", data=b"x" * limits.ARTIFACT_BYTES_MAX)), "by URL"),
        (Artifact("strange", {"x": float("nan")}), "could not be handed over"),
        (Artifact("strange", {"x": object()}), "could not be handed over"),  # type: ignore[dict-item]
        (Artifact("deep", _nested(3000)), "could not be handed over"),
        (Artifact(7, "x"), "could not be handed over"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_handed_over_is_said(artifact: Artifact, why: str) -> None:
    given, told = handed_over(artifact)
    assert given is None
    assert told.startswith("The call ended, but")
    assert why in told


def test_a_file_is_its_bytes_or_a_url() -> None:
    for wrong in ({}, {"data": b"x", "url": "https://example.org/"}):
        with pytest.raises(ValueError, match="give data, the bytes, or url"):
            File("text/plain", **wrong)  # type: ignore[arg-type]


def test_results_without_an_artifact_keep_their_digest() -> None:
    entry = ToolEntry(result=ToolResult(call_id="c", tool="t", status="ok", text="x"))
    assert "handed_over" not in body_of(entry)["result"]  # type: ignore[operator]
    assert digest(body_of(entry)) == "70f2706698a1d2b460df7ff18d0f999069d227815cd5fd404de15982b13d794a"
