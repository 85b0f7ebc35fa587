"""What the client commands refuse before anything was sent: one line that names the key, and exit code 2."""

import pytest

from perdure.cli.main import run_command

URL = "http://127.0.0.1:1"

WRONG = [
    pytest.param(["send"], "Missing argument 'URL'", id="no address"),
    pytest.param(["send", URL], "Missing argument 'MESSAGE'", id="no message"),
    pytest.param(["send", URL, " "], "MESSAGE: is empty", id="empty message"),
    pytest.param(["send", "127.0.0.1:8000", "hi"], "URL: '127.0.0.1:8000' ", id="no scheme"),
    pytest.param(["send", "ftp://host", "hi"], "must begin with http:// or https://", id="scheme"),
    pytest.param(["send", "http://", "hi"], "must begin with http:// or https:// and name a host", id="no host"),
    pytest.param(["send", URL, "hi", "--key", "é"], "--key: must have 1 to 256 printable ASCII characters", id="key"),
    pytest.param(["send", URL, "hi", "--key", "x" * 257], "--key: must have", id="long key"),
    pytest.param(["send", URL, "hi", "--patience", "-1"], "--patience", id="patience"),
    pytest.param(["watch", URL], "Missing argument 'TASK'", id="no task"),
    pytest.param(["watch", URL, "t-1", "--after", "-1"], "--after", id="after"),
    pytest.param(["answer", URL, "t-1"], "TEXT: give one answer", id="no answer"),
    pytest.param(["answer", URL, "t-1", ""], "TEXT: is empty", id="empty answer"),
    pytest.param(["cancel", URL], "Missing argument 'TASK'", id="cancel what"),
    pytest.param(["cancel", "nowhere", "t-1"], "URL: 'nowhere' must begin with", id="cancel where"),
    pytest.param(["steer", URL, "t-1"], "Missing argument 'MESSAGE'", id="steer what"),
    pytest.param(["drop", URL], "Missing argument 'TASK'", id="drop what"),
    pytest.param(["stop", "nowhere", "t-1"], "URL: 'nowhere' must begin with", id="stop where"),
    pytest.param(["inbox", URL], "Missing argument 'TASK'", id="inbox of what"),
    pytest.param(["send", URL, "hi", "--lane", "fast"], "--lane", id="lane"),
    pytest.param(["tasks", "nowhere"], "URL: 'nowhere' must begin with", id="tasks where"),
]


@pytest.mark.parametrize(("words", "text"), WRONG)
def test_wrong_usage_exits_2_and_names_the_key(capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    assert run_command(words) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert text in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.parametrize(
    "words",
    [
        ["send", URL, "hi"],
        ["watch", URL, "t-1"],
        ["cancel", URL, "t-1"],
        ["stop", URL, "t-1"],
        ["drop", URL, "t-1", "m-1"],
        ["tasks", URL],
    ],
)
def test_where_nobody_listens_it_is_said_at_once(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run_command(words) == 1
    said = capsys.readouterr()
    assert said.err == f"error: {URL} does not answer: it cannot be reached (ConnectError); nothing was sent\n"
    assert said.out == ""


@pytest.mark.parametrize("name", ["send", "watch", "answer", "inbox", "steer", "drop", "stop", "cancel", "tasks"])
def test_help_says_what_comes_first(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run_command([name, "--help"]) == 0
    assert "URL" in capsys.readouterr().out
