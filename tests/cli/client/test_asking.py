"""`perdure answer` for calls that wait and for forms, against `perdure serve`; and the prompt of `perdure run`."""

import pytest

from tests.cli.client.visitor import House, Plain, Visitor

pytestmark = pytest.mark.slow


def test_a_call_that_waits_is_approved_once(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "pay")
    assert asks.code == 1
    assert "May pay(amount=150.0) run? It waits by the rule: ask pay when amount > 100." in asks.err
    both = visitor.run("answer", asks.task_id, "approve", "--approve")
    assert (both.code, both.out) == (2, "")
    assert "give one answer: TEXT, NAME=VALUE…, --data, --approve, --decline or --edit" in both.err
    done = visitor.run("answer", asks.task_id, "--approve", "--key", "k")
    assert (done.code, done.out.splitlines()[-1]) == (0, "answer: paid 150")
    again = visitor.run("answer", asks.task_id, "--approve", "--key", "k", "--wait")
    assert (again.code, again.out) == (0, "answer: paid 150\n")
    second = visitor.run("answer", asks.task_id, "--approve")
    assert (second.code, second.out) == (2, "")
    assert house.world_lines("paid") == [["150", f"{asks.task_id}/1/0"]]


def test_a_call_that_waits_is_declined_or_changed(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "pay")
    declined = visitor.run("answer", asks.task_id, "--decline", "too much")
    assert (declined.code, declined.out.splitlines()[-1]) == (0, "answer: Declined: too much. It was not begun.")
    asks = visitor.run("send", "pay")
    wrong = visitor.run("answer", asks.task_id, "--edit", "amount=50")
    assert (wrong.code, wrong.err.splitlines()[0]) == (
        2,
        'error: --edit: give all arguments of the call as a JSON object: {"amount": 50}',
    )
    changed = visitor.run("answer", asks.task_id, "--edit", '{"amount": 50}')
    assert changed.code == 0
    assert changed.out.splitlines()[-1] == "paid 50"
    assert house.world_lines("paid") == [["50", f"{asks.task_id}/1/0"]]


def test_a_form_is_answered_by_its_fields(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "form")
    wrong = visitor.run("answer", asks.task_id, "size=XL", "count=2")
    assert wrong.code == 2
    assert 'size: must be one of "S", "M", got "XL"' in wrong.err
    done = visitor.run("answer", asks.task_id, "size=S", "count=2")
    assert (done.code, done.out.splitlines()[-1]) == (0, 'answer: {"count":2,"size":"S"}')
    asks = visitor.run("send", "form")
    done = visitor.run("answer", asks.task_id, "--data", '{"size": "M", "count": 1}')
    assert (done.code, done.out.splitlines()[-1]) == (0, 'answer: {"count":1,"size":"M"}')


def test_a_decision_about_a_call_is_no_answer_to_a_question(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "ask")
    assert asks.code == 1
    for words in (("--approve",), ("--decline", "fraud"), ("--edit", '{"amount": 5}')):
        refused = visitor.run("answer", asks.task_id, *words)
        assert (refused.code, refused.out) == (2, "")
        assert f"error: {words[0]}: is for a call that waits, and {asks.task_id}/1/0 is a question: 'Refund or" in (
            refused.err
        )
    assert visitor.run("answer", asks.task_id, "approve").out.splitlines()[-1] == "answer: approve"
    asks = visitor.run("send", "pay")
    assert visitor.run("answer", asks.task_id, "approve").out.splitlines()[-1] == "answer: paid 150"


def test_where_a_server_does_not_say_what_it_asks_a_decision_is_given(plain: Plain, guest: Visitor) -> None:
    plain.open()
    task_id = guest.run("send", "ask").err.split()[1]
    given = guest.run("answer", task_id, "--approve")
    assert (given.code, given.out.splitlines()[-1]) == (0, 'you said: {"approve":true}')
