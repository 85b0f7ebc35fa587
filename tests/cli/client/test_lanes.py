"""`perdure inbox`, `steer`, `drop` and `stop`: against a served agent as processes, and against a server that fails."""

import json

import pytest

from perdure.cli.client.giving import message_id_of
from perdure.cli.main import run_command
from tests.cli.client.stub import BREAK, Answer, error, result, stub
from tests.cli.client.visitor import House, Visitor

LATER, LAST = message_id_of("later"), message_id_of("last")


@pytest.mark.slow
def test_a_task_is_pushed_stopped_and_goes_on(house: House, visitor: Visitor) -> None:
    house.agent = "clerk:chatty"
    house.open()
    house.hold.touch()
    task_id = visitor.run("send", "ship", "--no-wait").out.strip()
    house.until(lambda: house.world_lines("begun"), "the tool is under way")
    for key in ("later", "last"):
        queued = visitor.run("send", key, "--task", task_id, "--lane", "queue", "--key", key, "--no-wait")
        assert queued.code == 0, queued.err
    listed = visitor.run("inbox", task_id, "--json")
    assert [(m["message_id"], m["lane"], m["runnable"]) for m in listed.objects[0]["messages"]] == [
        (LATER, "queue", True),
        (LAST, "queue", True),
    ]
    pushed = visitor.run("steer", task_id, LAST)
    assert (pushed.code, pushed.out) == (0, f"{LAST} goes next\n")
    dropped = visitor.run("drop", task_id, LATER, "--json")
    assert (dropped.code, dropped.objects[0]["message_id"]) == (0, LATER)
    stopped = visitor.run("stop", task_id)
    assert (stopped.code, stopped.out) == (0, f"{task_id} is stopped; the next message goes on\n")
    house.hold.unlink()
    house.until(lambda: house.task(task_id)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", "the run has ended")

    again = visitor.run("stop", task_id, "--json")
    assert (again.code, again.objects[0]["stopped"]) == (0, False)
    shown = visitor.run("inbox", task_id).out
    assert LAST in shown
    assert "parked" in shown
    gone = visitor.run("drop", task_id, LATER)
    assert (gone.code, gone.out) == (2, "")
    assert "does not wait" in gone.err
    on = visitor.run("send", "hello", "--task", task_id)
    assert (on.code, visitor.run("inbox", task_id).out) == (0, "  nothing waits\n")


@pytest.mark.slow
def test_a18_what_is_queued_behind_an_open_question_says_what_it_waits_for(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "form")
    queued = visitor.run("send", "later", "--task", asks.task_id, "--lane", "queue", "--json")
    assert (queued.code, queued.objects[-1]["outcome"]) == (1, "waiting"), queued.err
    waits = visitor.run("inbox", asks.task_id, "--json").objects[0]["messages"]
    assert [(each["lane"], each["runnable"]) for each in waits] == [("queue", True)]


@pytest.mark.parametrize("name", ["steer", "drop"])
def test_an_answer_that_is_lost_is_asked_for_again(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with stub(BREAK, Answer("", 503, {"Retry-After": "0"}), result({"generation": "7"})) as server:
        assert run_command([name, server.url, "t-1", "m-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"task_id": "t-1", "message_id": "m-1", "number": 7}
    assert [(body["method"], body["params"]) for _, body in server.asked] == [
        (f"perdure.{'Steer' if name == 'steer' else 'Withdraw'}Message", {"id": "t-1", "messageId": "m-1"})
    ] * 3


def test_what_waits_is_told_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    waits = {"messageId": "m-1", "lane": "steer", "runnable": True, "admitted": "3", "tail": "12"}
    with stub(result({"generation": "12", "messages": [waits, "no message"]})) as server:
        assert run_command(["inbox", server.url, "t-1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    told = {"message_id": "m-1", "lane": "steer", "runnable": True, "admitted": 3, "tail": 12}
    assert said == {"task_id": "t-1", "number": 12, "messages": [told]}


def test_what_a_lost_answer_leaves_open_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with stub(BREAK, error(-32602, "messageId: 'm-1' does not wait", code="message_not_waiting")) as server:
        assert run_command(["drop", server.url, "t-1", "m-1"]) == 2
    said = capsys.readouterr().err
    assert "it may have been taken back by this very command" in said
    assert "does not wait" in said


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (Answer("no", 500), 1, "error: the server answers HTTP 500"),
        (Answer("no"), 1, "error: the server's answer is not A2A"),
        (Answer({"jsonrpc": "2.0"}), 1, "error: the server's answer is not A2A"),
        (Answer("", 401), 2, "error: PERDURE_TOKEN: HTTP 401"),
        (error(-32603, "a defect"), 1, "error: the server failed: a defect"),
    ],
)
def test_what_is_no_answer_is_said(capsys: pytest.CaptureFixture[str], answer: Answer, code: int, text: str) -> None:
    with stub(answer) as server:
        assert run_command(["stop", server.url, "t-1"]) == code
    assert text in capsys.readouterr().err


def test_a_token_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_TOKEN", "secret")
    with stub(result({"stopped": True, "generation": "3"}), secured=True) as server:
        assert run_command(["stop", server.url, "t-1"]) == 0
    assert server.asked[0][0]["x-key"] == "secret"


def test_a_server_without_the_operations_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with stub(numbers=False) as server:
        assert run_command(["stop", server.url, "t-1"]) == 2
    assert "has no StopTask" in capsys.readouterr().err
