"""Each race without its rule, on the same stage: it comes out wrong, and for the right reason."""

import pytest

from perdure.core.errors import PerdureError
from tests.races import test_going_on as going_on
from tests.races import test_parked as parked
from tests.races import test_stopped as stopped
from tests.races.stage import DECLARED, Played, Stage
from tests.races.without import RULES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

MODULES = (parked, stopped, going_on)
CASES = [
    pytest.param(played, rule, found, id=f"{declared.case}-{rule}")
    for played, declared in DECLARED.items()
    for rule, found in declared.rules.items()
]


async def test_every_rule_has_its_race_and_every_race_its_rule() -> None:
    assert {rule for declared in DECLARED.values() for rule in declared.rules} == set(RULES)
    assert all(declared.rules for declared in DECLARED.values())


@pytest.mark.parametrize(("played", "rule", "found"), CASES)
async def test_without_its_rule_the_race_comes_out_wrong(stage: Stage, played: Played, rule: str, found: str) -> None:
    race = stage.race(played, rule)
    try:
        with pytest.raises((AssertionError, PerdureError)) as wrong:
            await race.played(played)
        assert found in str(wrong.value)
    finally:
        await race.give_up()
