"""The model of the agent's file, as a script: it uses each server, and tells what each call came to."""

import os
from pathlib import Path

from perdure.core.content import Entry, ToolEntry
from perdure.testing import call, say, scripted
from perdure.testing.script import Step

NOTE = str(Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent")) / "files" / "note.txt")
TEXT = "one jar was ordered"


def told(transcript: tuple[Entry, ...]) -> Step:
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return say("\n".join(f"{result.tool} {result.status}: {' '.join(result.text.split())}" for result in results))


model = scripted(
    call(
        "time.convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    call("db.write_query", {"query": "INSERT INTO orders (item) VALUES ('jar')"}),
    call("db.read_query", {"query": "SELECT count(*) AS jars FROM orders WHERE item = 'jar'"}),
    call("files.write_file", {"path": NOTE, "content": TEXT}),
    call("files.read_text_file", {"path": NOTE}),
    told,
)
