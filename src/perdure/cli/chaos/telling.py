"""What is printed: for people tables and sentences, with `--json` one object a line, the last one the sum.

The sum's figures are those of the worst supervised trial, or of the worst one where none was supervised: the plain
modes are there to be compared with, and their times are Temporal's.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from perdure.cli.chaos.evidence import Evidence
from perdure.cli.chaos.floor import Figures
from perdure.cli.chaos.verdict import Judgement
from perdure.cli.tables import print_table

OTHERS = "P7, P8, P10 and P11 are not judged here: they take a long life, a quiet wait, a stopwatch, a replay."


@dataclass(frozen=True)
class Tried:
    """A disturbed run, measured and judged."""

    evidence: Evidence
    figures: Figures
    judgements: tuple[Judgement, ...]

    @property
    def broken(self) -> list[str]:
        """The promises that were broken."""
        return [judgement.promise for judgement in self.judgements if judgement.word == "broken"]

    @property
    def name(self) -> str:
        """Mode and seed."""
        return f"{self.evidence.mode}, seed {self.evidence.seed}"


def print_trial(tried: Tried) -> None:
    """Print one trial: its calls, its times and the verdict."""
    evidence, figures = tried.evidence, tried.figures
    print(f"\n=== {tried.name}: task {evidence.task_id} ===")
    print_table(
        "calls",
        ("turn", "call", "tool", "class", "begun", "done", "effects", "key"),
        (
            (
                row.turn,
                row.index,
                row.tool,
                row.effect,
                len(row.begun),
                row.outcome if row.status in {None, "ok"} else f"{row.outcome}: {row.status}",
                "?" if evidence.world is None else evidence.seen(row.key),
                row.key,
            )
            for row in evidence.effects
        ),
        "none",
    )
    planned = len(evidence.plan)
    left = f" of {planned} planned (the task had ended)" if figures.kills < planned else ""
    print(f"\nkills       {figures.kills}{left}, {figures.idle_kills} of them hit nobody who worked")
    print(f"cut off     {figures.cut_calls} tool calls that had begun")
    print(f"undisturbed {figures.undisturbed_s:.1f} s")
    print(f"destroyed   {figures.destroyed_s:.1f} s of work, done again")
    print(f"floor       {figures.floor_s:.1f} s")
    print(f"took        {figures.disturbed_s:.1f} s, {figures.above_floor_s:+.1f} s from the floor")
    print()
    for judgement in tried.judgements:
        print(f"{judgement.promise:<5} {judgement.word:<10} {judgement.found}")


def print_sum(trials: Sequence[Tried]) -> None:
    """Print one line for each trial, then one for each mode, as the experiment was published."""
    if len(trials) > 1:
        print_table(
            "all trials",
            ("mode", "seed", "kills", "idle", "duplicates", "begun again", "seconds", "floor", "above", "broken"),
            (_row(tried) for tried in trials),
            "none",
        )
        print_table(
            "modes over the same seeds",
            ("mode", "trials", "duplicates", "begun again", "idle kills", "seconds (min/median/max)", "floor (median)"),
            (_mode_row(mode) for mode in mode_objects(trials)),
            "none",
        )
    print(f"\n{OTHERS}")
    broken = broken_in(trials)
    print(f"broken: {', '.join(broken)}" if broken else "broken: none of those that were judged")


def _row(tried: Tried) -> tuple[object, ...]:
    evidence, figures = tried.evidence, tried.figures
    return (
        evidence.mode,
        evidence.seed,
        figures.kills,
        figures.idle_kills,
        "?" if evidence.world is None else duplicates(evidence),
        begun_again(evidence),
        f"{figures.disturbed_s:.1f}",
        f"{figures.floor_s:.1f}",
        f"{figures.above_floor_s:+.1f}",
        " ".join(tried.broken) or "-",
    )


def _mode_row(mode: dict[str, Any]) -> tuple[object, ...]:
    seconds = " / ".join(f"{mode[name]:.1f}" for name in ("least_s", "median_s", "most_s"))
    told = "?" if mode["duplicates"] is None else mode["duplicates"]
    counts = mode["trials"], told, mode["begun_again"], mode["idle_kills"]
    return mode["mode"], *counts, seconds, f"{mode['floor_s']:.1f}"


def mode_objects(trials: Sequence[Tried]) -> list[dict[str, Any]]:
    """Return each mode's trials in one line: the published table. Duplicates are None without a probe."""
    found = []
    for mode in dict.fromkeys(tried.evidence.mode for tried in trials):
        of = [tried for tried in trials if tried.evidence.mode == mode]
        lasted = [tried.figures.disturbed_s for tried in of]
        probed = all(tried.evidence.world is not None for tried in of)
        found.append(
            {
                "mode": mode,
                "trials": len(of),
                "duplicates": sum(duplicates(tried.evidence) for tried in of) if probed else None,
                "begun_again": sum(begun_again(tried.evidence) for tried in of),
                "idle_kills": sum(tried.figures.idle_kills for tried in of),
                "least_s": min(lasted),
                "median_s": round(median(lasted), 3),
                "most_s": max(lasted),
                "floor_s": round(median(tried.figures.floor_s for tried in of), 3),
            }
        )
    return found


def duplicates(evidence: Evidence) -> int:
    """Return how many effects came beyond the first of their call."""
    applied = ((evidence.seen(row.key) or 0) for row in evidence.effects if row.effect != "read")
    return sum(max(0, count - 1) for count in applied)


def begun_again(evidence: Evidence) -> int:
    """Return how many tool calls were begun beyond their first time, under their own key."""
    return sum(max(0, len(row.begun) - 1) for row in evidence.effects)


def broken_in(trials: Sequence[Tried]) -> list[str]:
    """Return the promises that were broken in any trial."""
    return list(dict.fromkeys(promise for tried in trials for promise in tried.broken))


def trial_object(tried: Tried) -> dict[str, Any]:
    """Return a trial as a line of `--json`."""
    evidence = tried.evidence
    return {
        "trial": tried.name,
        "mode": evidence.mode,
        "seed": evidence.seed,
        "task_id": evidence.task_id,
        "state": evidence.state,
        **figures_object(tried.figures),
        "duplicates": None if evidence.world is None else duplicates(evidence),
        "begun_again": begun_again(evidence),
        "calls": [
            {
                "key": row.key,
                "tool": row.tool,
                "effect": row.effect,
                "begun": len(row.begun),
                "outcome": row.outcome,
                "status": row.status,
                "seen": evidence.seen(row.key),
            }
            for row in evidence.effects
        ],
        "killed": [kill.model_dump() for kill in evidence.kills],
        "verdict": {judgement.promise: judgement.word for judgement in tried.judgements},
        "found": {judgement.promise: judgement.found for judgement in tried.judgements},
        "broken": tried.broken,
    }


def figures_object(figures: Figures) -> dict[str, Any]:
    """Return the numbers of a trial."""
    return {**vars(figures), "floor_s": figures.floor_s, "above_floor_s": figures.above_floor_s}


def sum_object(trials: Sequence[Tried]) -> dict[str, Any]:
    """Return the last line of `--json`."""
    supervised = [tried for tried in trials if tried.evidence.mode == "supervised"]
    worst = max(supervised or trials, key=lambda tried: tried.figures.above_floor_s)
    return {
        **figures_object(worst.figures),
        "kills": sum(tried.figures.kills for tried in trials),
        "idle_kills": sum(tried.figures.idle_kills for tried in trials),
        "cut_calls": sum(tried.figures.cut_calls for tried in trials),
        "trials": len(trials),
        "modes": mode_objects(trials),
        "broken": broken_in(trials),
    }


def print_object(value: dict[str, Any]) -> None:
    """Print one line of `--json`."""
    print(json.dumps(value), flush=True)
