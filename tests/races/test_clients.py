"""A17 and A18 without their rules: a client that goes by arrival, and one that takes any end for an answer, are wrong.

The races themselves are `tests/cli/client/test_ends.py` (every order of arrival), `test_killed.py` and `test_served.py`
(real servers); here it is seen that they depend on what they are meant to show.
"""

import sys

import pytest

from perdure.cli.client.order import InOrder
from perdure.cli.client.said import Said
from tests.cli.client import visitor as visiting
from tests.cli.client.conftest import house, visitor
from tests.cli.client.test_ends import test_around_a_failure_every_order_of_arrival_comes_out_alike as arrivals
from tests.cli.client.test_served import test_a18_a_run_that_fails_ends_the_command_with_its_reason as failing
from tests.cli.client.visitor import House, Visitor
from tests.supervisor.fleet import FOLDER

__all__ = ["house", "visitor"]


def test_a17_a_client_that_goes_by_arrival_ends_on_the_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_comes(order: InOrder, said: Said) -> list[Said]:
        return [order._fresh(said)]

    arrivals()
    monkeypatch.setattr(InOrder, "take", as_it_comes)
    with pytest.raises(AssertionError, match="seed"):
        arrivals()


@pytest.mark.slow
def test_a18_a_client_that_takes_any_end_for_an_answer_is_wrong(
    house: House, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command itself, against the same server: it exits with 0 although the run failed."""
    monkeypatch.setattr(visiting, "COMMAND", (sys.executable, "-m", "tests.races.sending"))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    with pytest.raises(AssertionError, match="assert 0 == 1") as wrong:
        failing(house, visitor)
    assert "Finished(code=0" in str(wrong.value)
