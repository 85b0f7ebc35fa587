"""`perdure run` at a terminal's prompt: a call that waits is approved, changed, declined, or left for later."""

import getpass

import pytest

from tests.cli.desk import Desk

pytestmark = pytest.mark.slow


def test_a_call_is_changed_at_the_prompt_and_who_did_it_is_recorded(desk: Desk) -> None:
    done = desk.perdure("run", "helpdesk:agent", "pay", stdin='perhaps\ne {"amount": 60}\n')
    assert (done.code, done.out.splitlines()[-1]) == (0, "paid 60"), done.err
    assert "text: 'perhaps' neither approves nor declines" in done.err
    assert f'approved by {getpass.getuser()}, changed to {{"amount": 60}}' in done.out
    assert desk.world_lines("paid") == [["60", f"{done.task_id}/1/0"]]


def test_a_call_waits_until_somebody_says_no(desk: Desk) -> None:
    left = desk.perdure("run", "helpdesk:agent", "pay")
    assert (left.code, desk.world_lines("paid")) == (1, [])
    assert "for a person's answer to 'May pay(amount=150.0) run?" in desk.here("show", left.task_id).out
    done = desk.perdure("run", "--resume", left.task_id, stdin="n not today\n")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        f"answer: Declined by {getpass.getuser()}: not today. It was not begun.",
    )
    assert desk.world_lines("paid") == []
