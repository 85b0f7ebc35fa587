"""What the client makes of every way in which a server can fail it."""

import json
from typing import Any

import pytest

from perdure.a2a.extension import URI
from perdure.cli.client.giving import message_id_of
from perdure.cli.main import run_command
from tests.cli.client.stub import BREAK, Answer, Json, Step, Stream, error, result, stub, task, update

pytestmark = pytest.mark.slow

MINE = message_id_of("k")
TASK: Json = task(2)["task"]


def whole_run(first: int = 1) -> tuple[Json, ...]:
    """Return a run of the message under key `k`, from event `first` on."""
    events = (
        update(1, "message.admitted", "SUBMITTED", 0, message_id=MINE),
        update(2, "run.started"),
        update(3, "message.promoted", message_id=MINE),
        update(4, "run.ended", end="answered"),
        update(5, "task.status", "COMPLETED"),
    )
    return events[first - 1 :]


def outcome(capsys: pytest.CaptureFixture[str]) -> tuple[list[int], Json, str]:
    said = capsys.readouterr()
    *events, last = [json.loads(line) for line in said.out.splitlines()]
    return [each["number"] for each in events], last, said.err


def send(url: str, *words: str) -> int:
    return run_command(["send", url, "hi", "--json", "--key", "k", *words])


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(BREAK, id="the connection breaks with the message in hand"),
        pytest.param(Answer("", 502), id="a gateway lost its server"),
        pytest.param(Answer("", 503, {"Retry-After": "0"}), id="the service is unavailable"),
        pytest.param(error(-32603, "the store is away", code="store_unavailable"), id="as JSON-RPC says it"),
    ],
)
def test_a_message_is_given_again_where_it_is_known_again(capsys: pytest.CaptureFixture[str], trouble: Step) -> None:
    with stub(trouble, Stream((task(0), *whole_run()))) as server:
        assert send(server.url) == 0
    assert server.methods == ["SendStreamingMessage"] * 2
    assert {headers["idempotency-key"] for headers, _ in server.asked} == {"k"}
    assert server.asked[0][1]["params"] == server.asked[1][1]["params"]
    numbers, last, err = outcome(capsys)
    assert (numbers, last["outcome"]) == ([1, 2, 3, 4, 5], "answered")
    assert err.count("trying again") == 1


@pytest.mark.parametrize(
    ("trouble", "again"), [(BREAK, False), (Answer("", 502), False), (Answer("", 503), False), (Answer("", 429), True)]
)
def test_elsewhere_only_what_was_not_taken_in_is_given_again(
    capsys: pytest.CaptureFixture[str], trouble: Step, again: bool
) -> None:
    done = Stream((task(None, "COMPLETED"),))
    with stub(trouble, done, result(TASK), numbers=False) as server:
        assert send(server.url) == (0 if again else 1)
    assert server.methods == (["SendStreamingMessage"] * 2 + ["GetTask"] if again else ["SendStreamingMessage"])
    assert ("it is not known whether" in capsys.readouterr().err) is not again


def test_a_stream_goes_on_behind_the_last_number_whatever_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three, four, five = whole_run()
    steps = (
        Stream((task(0), one, three), breaks=True),  # 2 never came, so 3 was not seen
        Stream((task(1),), breaks=True),
        Stream((task(1), four, three, two, two, five)),
    )
    with stub(*steps) as server:
        assert send(server.url) == 0
    assert server.methods == ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]
    assert [headers.get("last-event-id") for headers, _ in server.asked] == [None, "1", "1"]
    assert [headers["a2a-extensions"] for headers, _ in server.asked] == [URI] * 3
    assert outcome(capsys)[0] == [1, 2, 3, 4, 5]


def test_a_server_that_was_put_back_is_not_believed(capsys: pytest.CaptureFixture[str]) -> None:
    with stub(Stream((task(0), *whole_run()[:3]), breaks=True), Stream((task(1), *whole_run(2)))) as server:
        assert send(server.url) == 1
    assert "knows this task up to event 1 only, and 3 were seen here" in capsys.readouterr().err


def test_a_rest_counts_only_where_nothing_follows(capsys: pytest.CaptureFixture[str]) -> None:
    """An old question was answered long ago: who reads the log from the start does not stop at it."""
    asked = (
        update(1, "message.promoted", message_id=MINE),
        update(2, "task.status", "INPUT_REQUIRED", reason="help"),
    )
    rest = (update(3, "task.status"), update(4, "run.ended", end="answered"), update(5, "task.status", "COMPLETED"))
    with stub(Stream((task(0), *asked, *rest)), result(task(5, "COMPLETED")["task"])) as server:
        assert send(server.url) == 0
    assert server.methods == ["SendStreamingMessage", "GetTask"]
    capsys.readouterr()
    steps = (Stream((task(0), *asked)), BREAK, Stream((task(2, "INPUT_REQUIRED"),)), result(TASK))
    with stub(*steps) as server:
        assert send(server.url) == 1
    assert server.methods == ["SendStreamingMessage", "GetTask", "SubscribeToTask", "GetTask"]
    assert outcome(capsys)[1]["outcome"] == "waiting"


def test_a_task_that_ended_meanwhile_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ended = {**TASK, "status": {"state": "TASK_STATE_FAILED"}}
    steps = (Stream((task(0), whole_run()[0]), breaks=True), error(-32004, "it has ended"), result(ended))
    with stub(*steps) as server:
        assert send(server.url) == 1
    assert server.methods == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]
    assert outcome(capsys)[1]["state"] == "failed"


def test_a_cancel_whose_answer_was_lost_is_known_to_have_been_done(capsys: pytest.CaptureFixture[str]) -> None:
    canceled = {**TASK, "status": {"state": "TASK_STATE_CANCELED"}}
    with stub(BREAK, error(-32002, "it has ended"), result(canceled)) as server:
        assert run_command(["cancel", server.url, "t-1"]) == 0
    assert server.methods == ["CancelTask", "CancelTask", "GetTask"]
    assert capsys.readouterr().out == "t-1 is CANCELED\n"


def test_patience_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with stub(Answer("", 503, {"Retry-After": "30"})) as server:
        assert send(server.url, "--patience", "5") == 1
    said = capsys.readouterr().err
    assert "the server does not answer for 5 s: HTTP 503" in said
    assert "give the same again, with --key k" in said


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (Answer("no", 500), 1, "error: the server answers HTTP 500 at http://127.0.0.1:"),
        (Answer("no"), 1, "error: the server's answer is not A2A"),
        (Answer({"jsonrpc": "2.0"}), 1, "error: the server's answer is not A2A"),
        (Answer("", 401), 2, "error: PERDURE_TOKEN: HTTP 401; set a token that http://127.0.0.1:"),
        (Answer({"error": {"message": "too large"}}, 413), 2, "error: refused: HTTP 413: too large"),
        (error(-32603, "a defect"), 1, "error: the server failed: a defect"),
        (error(-32602, "message.contextId: too long"), 2, "error: refused: message.contextId: too long"),
    ],
)
def test_what_is_no_answer_is_said(capsys: pytest.CaptureFixture[str], answer: Answer, code: int, text: str) -> None:
    with stub(answer) as server:
        assert send(server.url) == code
    assert server.methods == ["SendStreamingMessage"]
    assert text in capsys.readouterr().err


def test_a_token_goes_to_whom_it_is_for_and_nobody_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TOKEN", "secret-7")
    with stub(Stream((task(0), *whole_run())), secured=True) as server:
        assert send(server.url) == 0
    assert server.asked[0][0]["x-key"] == "secret-7"
    with stub(secured=True) as server:
        server.card_url = "http://elsewhere.test/"
        assert send(server.url) == 2
    assert "error: PERDURE_TOKEN: is for http://127.0.0.1:" in capsys.readouterr().err
    with stub(Stream((task(0), *whole_run()))) as server:
        assert send(server.url) == 0
    assert "secret-7" not in json.dumps(server.asked), "a server that asks for none is shown none"


def test_a_server_that_breaks_off_each_time_is_not_asked_in_a_tight_loop(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Stream((task(None),)) for _ in range(4)]
    with stub(*steps, Stream((task(None, "COMPLETED"),)), result(TASK), numbers=False) as server:
        assert run_command(["watch", server.url, "t-1"]) == 0
    assert server.methods == ["SubscribeToTask"] * 5 + ["GetTask"]
    assert capsys.readouterr().err.count("trying again") == 1


def artifact(name: str, text: str, **told: Any) -> Json:
    named = {"artifactId": name, "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "artifact": named, "metadata": {URI: told}}}


def test_the_answer_is_neither_a_draft_of_it_nor_what_a_tool_handed_over(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three, *_ = whole_run()
    steps = (
        artifact("turn-1", "dra", kind="draft", turn=1, attempt=1),
        artifact("turn-1-0", "a label", kind="tool.finished", generation="4", run=1, turn=1, tool="ship"),
        artifact("turn-1", "whole", kind="model.answered", generation="5", run=1, turn=1),
    )
    ends = (update(6, "run.ended", end="answered"), update(7, "task.status", "COMPLETED"))
    stream = Stream((task(0), one, two, three, *steps, *ends))
    with stub(stream, stream) as server:
        assert send(server.url) == 0
        numbers, last, _ = outcome(capsys)
        assert (numbers, last["answer"]) == ([1, 2, 3, None, 4, 5, 6, 7], "whole")
        assert run_command(["send", server.url, "hi", "--key", "k"]) == 0
    shown = capsys.readouterr().out
    assert "    4  ship         hands over turn-1-0: a label\n    5  answer       whole\n" in shown
    assert "dra" not in shown


def test_what_a_server_writes_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    said: dict[str, Any] = {
        "kind": "message",
        "parts": [{"text": "\x1b[2Jgone"}],
        "messageId": "m",
        "role": "ROLE_AGENT",
    }
    with stub(Stream(({"message": {k: v for k, v in said.items() if k != "kind"}},)), numbers=False) as server:
        assert run_command(["send", server.url, "hi"]) == 0
    assert "\x1b" not in capsys.readouterr().out
