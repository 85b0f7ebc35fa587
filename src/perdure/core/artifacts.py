"""What a tool returns when its result is for whoever gave the task, and not only for the model.

An `Artifact` is handed over as it is: a client gets it as an artifact of the task. The model is told that it was, in
`text` or in words made from it. It is recorded with the call's result, in one row, so that there is no moment in which
the one is known and the other is not; hence its size is bounded (`ARTIFACT_BYTES_MAX`), and what is larger goes by URL.
"""

from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True)
class File:
    """A file, by its bytes or by a URL from which it can be fetched.

    Raises:
        ValueError: There are both or neither.
    """

    media_type: str
    name: str = ""
    data: bytes | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError(f"File {self.name!r}: give data, the bytes, or url, where they are; one of the two")


class Artifact:
    """A result to be handed over: texts, JSON values and files, under a name.

    Args:
        name: What it is called.
        parts: Its parts: a text, a `File`, or any other JSON value as data.
        text: What the model is told of it; by default its name and what it is made of.
    """

    def __init__(self, name: str, *parts: File | JsonValue, text: str = "") -> None:
        self.name = name
        self.parts = parts
        self.text = text

    def __repr__(self) -> str:
        return f"<artifact {self.name!r} of {len(self.parts)} parts>"


@dataclass(frozen=True)
class WithFiles:
    """A result of which files are a part: images, recordings, documents that a server's tool made.

    The model is told `text` and which files there are. Those with bytes are kept in the store; `artifact` is what of it
    all is for whoever gave the task.
    """

    text: str
    files: tuple[File, ...] = ()
    artifact: Artifact | None = None


@dataclass(frozen=True)
class Asks:
    """What a tool puts to a person in place of a result: the call has not ended, and goes on with the answer.

    `choices` are the answers that it takes, empty where it takes any; `form` is the JSON schema of an answer that is an
    object, for whoever shows it: the tool judges. `kept` comes back with the answer, as it is.
    """

    question: str
    choices: tuple[str, ...] = ()
    kept: JsonValue = None
    form: dict[str, JsonValue] | None = None


Returned = JsonValue | Artifact | WithFiles | Asks
"""What a call of a tool may come to."""
