"""What the soak's tasks can live without, so that it is seen to find what it is for: rules, each with what is found.

Which task lives without which follows from its id, as on the stage of the races (`without.py`).
"""

from perdure.core.machine import admission, calls, run
from tests.races import without
from tests.races.without import Rule

GUARD = "PERDURE_TEST_SOAK_BREAKS"

LASTS = 'any(p.message_id.endswith(".last") for p in draft.state.inbox)'

BROKEN: dict[str, tuple[Rule, str]] = {
    "a-message-wakes": (
        Rule(
            run._from_idle,
            "if not draft.state.has_work:",
            f"if not draft.state.has_work or (draft.state.runs > 0 and not {LASTS}):",
        ),
        "R7: ",
    ),
    "steers-go-first": (
        Rule(
            run._joining,
            "steers = _steers(state)",
            'steers = [] if any(p.lane == "queue" for p in state.inbox) else _steers(state)',
        ),
        "R4: ",
    ),
    "an-answered-run-ends-answered": (
        Rule(run._between, '_end(draft, "answered", "", "")', '_end(draft, "failed", "model", "")'),
        "R10: ",
    ),
    "what-is-taken-back-is-gone": (without.RULES["what-is-taken-back-is-gone"], "R6: "),
    "a-stop-stops": (Rule(admission.stop_requested, "if state.run.ending is None:", "if False:"), "P9: "),
    "begun-calls-are-looked-up": (Rule(calls.resume_calls, "if call.attempts > 0:", "if False:"), "P4: "),
}
"""By name: what is taken out, and the beginning of what the checker must say. The first one's task is never stopped."""

AT_REST = frozenset({"R7: "})
"""What only shows when everybody else has gone."""


def take_out() -> None:
    """Let every task of this process that names one of these live without it. Once in a process."""
    without.take_out({name: rule for name, (rule, _) in BROKEN.items()})
