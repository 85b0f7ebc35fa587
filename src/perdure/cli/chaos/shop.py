"""The demo's support agent as a case: its shop is the outside world, and its own log is the probe."""

from datetime import date
from pathlib import Path

from perdure.cli.chaos.case import Case
from perdure.cli.demo.agent import REFERENCE, WORLD_VARIABLE, shop_agent
from perdure.cli.demo.script import ANSWER, COMPLAINT
from perdure.cli.demo.world import World

WRITING = frozenset({"refund", "ship_replacement"})


def shop_case(home: Path) -> Case:
    """Return the case, with a new shop in the folder `home`."""
    world = World.create(home / "world.db", date.today())  # noqa: DTZ011 - the day is only shown, and the world keeps it

    def effects() -> list[dict[str, str]]:
        applied = [received for received in world.calls() if received.outcome == "applied" and received.tool in WRITING]
        return [{"key": received.key, "tool": received.tool} for received in applied]

    return Case(
        agent=shop_agent(world),
        reference=REFERENCE,
        folder=home,
        messages=(COMPLAINT,),
        answers=(ANSWER,),
        probe=effects,
        environment={WORLD_VARIABLE: str(world.path)},
    )
