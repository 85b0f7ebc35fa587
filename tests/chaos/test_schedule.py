import pytest

from perdure.cli.chaos.schedule import Every, parse_seeds, planned
from perdure.core.errors import InvalidInput


def test_a_seed_gives_the_same_schedule_again_and_another_seed_another() -> None:
    every = Every.parse("2-6")
    first = planned(1, 8, every, ("worker", "app"))
    assert first == planned(1, 8, every, ("worker", "app"))
    assert first != planned(2, 8, every, ("worker", "app"))
    assert len(first) == 8
    assert all(2 <= kill.gap_s <= 6 for kill in first)


def test_a_schedule_stays_what_it_was_in_releases_before() -> None:
    """A published seed must go on meaning the same kills."""
    assert [kill.gap_s for kill in planned(1, 3, Every.parse("2-6"), ("worker",))] == [2.537, 2.472, 4.606]


def test_all_targets_come_up() -> None:
    kills = planned(1, 40, Every.parse("1"), ("worker", "app", "temporal"))
    assert {kill.target for kill in kills} == {"worker", "app", "temporal"}
    assert {kill.gap_s for kill in kills} == {1.0}


@pytest.mark.parametrize("text", ["", "6-2", "0-1", "-1", "a-b", "2-", "nan", "1-inf"])
def test_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--every"):
        Every.parse(text)


def test_seeds_are_read() -> None:
    assert parse_seeds("7") == (7,)
    assert parse_seeds("1-3,9,2") == (1, 2, 3, 9)


@pytest.mark.parametrize("text", ["", "x", "3-1", "1-", "1-99999", "-2"])
def test_no_seeds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--seed"):
        parse_seeds(text)
