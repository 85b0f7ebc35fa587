"""The demo over A2A: server and worker are processes of their own, killed at the same two moments."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.cli.demo.evidence import Evidence
from perdure.cli.demo.verdict import judge
from tests.demo.made_up import NUMBER, good
from tests.demo.test_demo import is_gone, played, rows, worlds_under


@pytest.mark.slow
async def test_server_and_worker_killed_twice_the_customer_gets_one_replacement(tmp_path: Path) -> None:
    done = await played(tmp_path, "--a2a", "--json")
    assert done.status == 0, (done.lines, done.errors)

    (world,) = worlds_under(tmp_path)
    calls = rows(world, "SELECT tool, key FROM calls")
    tools = Counter(tool for tool, _ in calls)
    assert tools == {"list_open_orders": 1, "get_order": 2, "look_up_policy": 3, "ship_replacement": 1}
    assert len({key for tool, key in calls if tool == "get_order"}) == 1
    assert rows(world, "SELECT count(*) FROM refunds") == [(0,)]
    ((order, tracking_number),) = rows(world, "SELECT order_id, tracking_number FROM shipments")
    assert order == "A-1001"

    lines = [json.loads(line) for line in done.lines]
    of_server = [line for line in lines if line["event"].startswith("worker.") and "the server" in line["text"]]
    assert [line["event"] for line in of_server] == [
        *("worker.started", "worker.killed") * 2,
        "worker.started",
    ]
    assert len({line["pid"] for line in of_server}) == 3
    assert all(is_gone(line["pid"]) for line in lines if line["event"] == "worker.started")
    assert any(tracking_number in line["text"] for line in lines if line["event"] == "model.answered")
    claims = {each["claim"] for each in done.verdict["judgements"]}
    for claim in (
        "the server was killed twice as well, and the customer came to the next one",
        "the customer's A2A client has that tracking number",
        "get_order's first attempt was cut off and its second completed; every other activity has one attempt",
        "the worker was killed with SIGKILL twice",
    ):
        assert claim in claims
    assert [line["number"] for line in lines if "number" in line] == list(range(1, 39)), "P6: as it came over A2A"


def visited(**notes: object) -> Evidence:
    evidence = good()
    over_a2a = {"a2a": True, "servers": (1, 2, 3), "server_deaths": (-9, -9), "told": f"It is on its way: {NUMBER}."}
    return replace(evidence, notes=evidence.notes.model_copy(update={**over_a2a, **notes}))


def broken(evidence: Evidence) -> list[str]:
    return [judgement.promise for judgement in judge(evidence) if not judgement.held]


def test_a_visit_in_which_everything_went_well_holds() -> None:
    assert len(judge(visited())) == len(judge(good())) + 2
    assert broken(visited()) == broken(good())


@pytest.mark.parametrize(
    ("notes", "promise"),
    [
        ({"server_deaths": (-9,), "servers": (1, 2)}, "kill"),
        ({"server_deaths": (-9, -15)}, "kill"),
        ({"servers": (1, 1, 1)}, "kill"),
        ({"told": "It is on its way."}, "P4"),
        ({"seen": (1, 2, 4)}, "P6"),
    ],
)
def test_what_did_not_hold_is_seen(notes: dict[str, object], promise: str) -> None:
    assert promise in broken(visited(**notes))
