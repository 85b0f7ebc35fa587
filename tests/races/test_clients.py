"""A17 and A18 without their rules: a client that goes by arrival, and one that takes any end for an answer, are wrong.

The races themselves are `tests/cli/client/test_ends.py` (every order of arrival), `test_killed.py` and `test_served.py`
(real servers); here it is seen that they depend on what they are meant to show.
"""

from typing import Any

import pytest

from perdure.cli.client import ends
from perdure.cli.client.order import InOrder
from perdure.cli.client.said import Said
from tests.cli.client.test_ends import test_around_a_failure_every_order_of_arrival_comes_out_alike as arrivals
from tests.races.without import Rule, without


def test_a17_a_client_that_goes_by_arrival_ends_on_the_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_comes(order: InOrder, said: Said) -> list[Said]:
        return [order._fresh(said)]

    arrivals()
    monkeypatch.setattr(InOrder, "take", as_it_comes)
    with pytest.raises(AssertionError, match="seed"):
        arrivals()


def test_a18_a_client_that_takes_any_end_for_an_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    method: Any = ends.MessageEnd._run_ended
    any_end = without("any end", Rule(method, 'answered = said.data.get("end") == "answered"', "answered = True"))
    monkeypatch.setattr(ends.MessageEnd, "_run_ended", any_end)
    with pytest.raises(AssertionError, match="'answered' != 'unanswered'"):
        arrivals()
