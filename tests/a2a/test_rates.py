"""Rates and places, by themselves."""

import pytest

from perdure.a2a.rates import NoPlaceError, Places, Rate


def test_a_burst_and_then_a_steady_pace() -> None:
    rate = Rate(per_s=10, burst=3, names_max=10)
    assert [rate.take("a", 0.0) for _ in range(3)] == [0, 0, 0]
    assert rate.take("a", 0.0) == pytest.approx(0.1)
    assert rate.take("b", 0.0) == 0  # another name
    taken = sum(rate.take("a", n / 1000) == 0 for n in range(1, 1050))
    assert taken == 10
    assert [rate.take("a", 100.0) for _ in range(4)][:3] == [0, 0, 0]  # never more than a burst


def test_a_refusal_costs_nothing() -> None:
    rate = Rate(per_s=1, burst=1, names_max=10)
    assert rate.take("a", 0.0) == 0
    for n in range(100):
        assert rate.take("a", n / 200) > 0
    assert rate.take("a", 1.0) == 0


def test_of_many_names_the_one_quiet_longest_is_forgotten() -> None:
    rate = Rate(per_s=1, burst=1, names_max=2)
    for name in ("a", "b", "a", "c"):
        rate.take(name, 0.0)
    assert rate.take("a", 0.0) > 0  # b went, though a came first
    assert rate.take("b", 0.0) == 0


def test_places_are_given_back_whatever_happens() -> None:
    places = Places(in_all=2, per_name=1)
    with places.taken("a"):
        with pytest.raises(NoPlaceError) as full, places.taken("a"):
            pass
        assert not full.value.in_all
        with places.taken("b"), pytest.raises(NoPlaceError) as full, places.taken("c"):
            pass
        assert full.value.in_all
        with pytest.raises(ZeroDivisionError), places.taken("b"):
            _ = 1 / 0
        with places.taken("b"):
            pass
    with places.taken("a"), places.taken("c"):
        pass
