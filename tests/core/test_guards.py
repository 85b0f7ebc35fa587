"""Guards are executable: each is taken out of the machine, and the tests that protect it are seen to fail.

A guard is a piece of one function's source. It is replaced, the function's code is exchanged in place so that all who
imported it get the change, and both the named test and (where a number is given) a random life must break.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import FunctionType
from typing import Any

import pytest

from perdure.core.errors import InvariantBroken
from perdure.core.machine import admission, attempts, calls, closing, doubts, run, turn
from perdure.core.state import TaskState
from tests.core import test_cases_field as field
from tests.core import test_cases_races as races
from tests.core import test_rules_calls as rules_calls
from tests.core import test_rules_doubts as rules_doubts
from tests.core import test_rules_messages as messages
from tests.core import test_rules_runs as runs
from tests.core import test_transition_table as table
from tests.core.life import Life

LIVES_MAX = 1_000
"""Seeded lives to try; all guards here are found missing well before that."""


@dataclass(frozen=True)
class Guard:
    """`old` in the source of `function`, without which `test` fails, and a life breaks `number` (`R1|R7`: either)."""

    function: Any
    old: str
    new: str
    test: Callable[[], None]
    number: str = ""


HAS_WORK = TaskState.has_work.fget  # type: ignore[attr-defined]
HEAD = 'if end != "answered":\n        draft.set(head=number)'

GUARDS = {
    "an unanswered end moves the head": Guard(
        run._end, HEAD, "pass", runs.test_r9_an_unanswered_end_starts_nothing, "R1|R7"
    ),
    "a stop before the run moves the head": Guard(
        admission.stop_requested,
        "draft.set(head=number)",
        "pass",
        races.test_a13_a_message_stopped_right_after_an_answered_end_never_starts_by_itself,
        "R1",
    ),
    "a run opens for durable messages only": Guard(
        HAS_WORK, " and p.stored", "", messages.test_r3_a_message_is_promoted_only_once_it_is_stored, "R7"
    ),
    "what a call took along that never came back was not acted on": Guard(
        run._finish,
        "*draft.state.unanswered, ",
        "",
        runs.test_p1_a_message_that_no_reply_came_after_is_listed_and_one_that_was_answered_is_not,
        "P1",
    ),
    "steers join once they are durable": Guard(
        run._steers,
        "if not pending.stored",
        "if False",
        messages.test_r4_steers_that_are_not_durable_hold_back_later_ones,
        "R3",
    ),
    "queued messages join once they are durable": Guard(
        run._joining,
        " and queued.stored",
        "",
        messages.test_r3_an_answer_waits_for_messages_that_are_not_durable_yet,
        "R3",
    ),
    "queued messages wait for the answer before them": Guard(
        run._joining,
        "state.run.fed and not state.run.answered",
        "False",
        messages.test_r4_queued_messages_join_one_at_a_time_after_an_answer,
        "R4",
    ),
    "steers join in the order of the lane": Guard(
        run._steers,
        "key=lambda p: p.tail",
        "key=lambda p: -p.tail",
        messages.test_r4_all_steers_join_at_the_next_turn_in_order,
        "P1",
    ),
    "a resend changes nothing": Guard(
        admission.admitted,
        "event.digest) is not None",
        "event.digest) == -1",
        messages.test_p1_the_same_message_again_changes_nothing,
        "P1",
    ),
    "a conflicting resend is refused": Guard(
        admission.resend,
        "if seen_digest != content",
        "if False",
        messages.test_p1_the_same_id_with_other_content_is_refused,
        "P1",
    ),
    "a closed task takes nothing in": Guard(
        admission.refuse_admission,
        "if state.terminal or state.canceling",
        "if False",
        races.test_p5_after_the_terminal_state_nothing_is_taken_in,
        "P5",
    ),
    "a budget is checked before promotion": Guard(
        run._between,
        "over = exceeded(",
        "[_promote(draft, p) for p in joining]; over = exceeded(",
        runs.test_budget_ends_the_run_before_anything_is_promoted_for_nothing,
        "P1",
    ),
    "each message of a queue has the whole budget": Guard(
        turn.model_replied,
        ", spent=by_now",
        "",
        runs.test_r4_a_long_queue_is_answered_by_one_run_and_each_message_has_the_whole_budget,
        "R10",
    ),
    "no model attempt follows in a run that ends": Guard(
        turn.model_failed,
        "if draft.run.ending is not None",
        "if False",
        runs.test_r8_the_state_says_that_an_end_is_still_owed,
        "P9|R8|R10",
    ),
    "no tool attempt follows in a run that ends": Guard(
        calls.tool_failed,
        "draft.run.ending is not None or ",
        "",
        runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies,
        "P9|R8",
    ),
    "no call starts in a run that ends": Guard(
        calls.start_calls,
        "if draft.run.ending is not None",
        "if False",
        runs.test_p9_nothing_is_asked_once_the_run_is_out_of_time,
        "P9",
    ),
    "a run ends once nothing of it flies": Guard(
        run._land, " or flying(draft.state)", "", runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies, "R10"
    ),
    "a stop fences its run": Guard(
        admission.wind_down,
        "draft.ask(Fence(run=draft.run.number))",
        "pass",
        runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies,
        "P9",
    ),
    "calls that must run alone do": Guard(
        calls.start_calls,
        "if any_before and (alone_before or not beside)",
        "if False",
        rules_calls.test_r14_calls_run_in_order_and_beside_each_other_only_where_all_allow_it,
        "R14",
    ),
    "results stand in call order": Guard(
        closing.close_call,
        "break",
        "continue",
        rules_calls.test_r14_results_stand_in_call_order_whatever_their_order_of_completion,
        "R14",
    ),
    "open calls are resolved before the next turn": Guard(
        run._from_idle,
        "resume_calls(draft)",
        "draft.set(turn=None)",
        rules_calls.test_r14_an_unanswered_run_leaves_calls_that_the_next_one_resolves_first,
        "R14",
    ),
    "an attempt answers once": Guard(
        turn.flying_model,
        "current.ops.attempt != attempt",
        "False",
        table.test_results_of_superseded_attempts_are_illegal,
        "P3",
    ),
    "a closed key is never used again": Guard(
        calls._key_closed,
        "call.generation + 1",
        "call.generation",
        rules_calls.test_p3_a_closed_key_is_followed_by_the_next,
        "P3",
    ),
    "a doubted call is not begun under a new key": Guard(
        calls._start,
        "if doubt is not None and not call.resolving",
        "if False",
        rules_calls.test_p4_an_unknown_outcome_is_said_and_never_begun_again,
        "P4",
    ),
    "a retry beside a doubted twin begins nothing": Guard(
        calls.call_tool,
        " or doubt_of(draft, call) is not None",
        "",
        rules_calls.test_p4_a_retry_beside_a_doubted_twin_only_resolves,
        "P4",
    ),
    "what may have happened is looked up before giving up": Guard(
        calls._give_up,
        "elif call.resolving",
        "elif True",
        lambda: rules_calls.test_p4_before_it_gives_up_it_finds_out_what_happened("refund"),
        "P4",
    ),
    "keys that close again and again come to an end": Guard(
        calls._key_closed,
        "call.failures < spec.retry.attempts_max and call.generation < draft.bounds.keys_per_call_max",
        "True",
        rules_calls.test_p7_keys_that_close_again_and_again_come_to_an_end,
    ),
    "a run that ends asks nobody": Guard(
        doubts._ask, "if not may_ask", "if False", rules_doubts.test_p9_a_run_that_ends_asks_nobody, "P9"
    ),
    "an old word is forgotten where a person is asked anew": Guard(
        doubts._ask,
        "word=None",
        "word=call.word",
        rules_doubts.test_p4_a_word_that_could_not_be_carried_is_asked_for_again,
    ),
    "in a run that ends a word waits": Guard(
        calls.answered,
        "draft.run.ending is None",
        "True",
        rules_doubts.test_p9_a_word_that_comes_while_the_run_ends_is_carried_by_the_next,
    ),
    "a word that says neither is refused": Guard(
        doubts.read_word,
        "plain not in {HAPPENED, DID_NOT_HAPPEN}",
        "False",
        lambda: rules_doubts.test_p4_a_word_that_says_neither_is_refused_and_changes_nothing("yes"),
        "P4",
    ),
    "a doubt is lifted by its own key": Guard(
        doubts.lift_doubt,
        "doubt.key != key",
        "False",
        rules_doubts.test_p4_a_doubt_that_a_later_run_settles_is_lifted,
        "P4",
    ),
    "a late result is an event once": Guard(
        doubts.take_late,
        "if late.key not in watched_keys(draft.state)",
        "if False",
        rules_doubts.test_p4_a_result_that_comes_late_is_an_event_once,
        "P4",
    ),
    "a late result stands against the same call until it is told": Guard(
        doubts.take_late,
        "replaced(d, late=late) if d.key == late.key else d for d in draft.state.doubts",
        "d for d in draft.state.doubts if d.key != late.key",
        rules_doubts.test_p4_the_same_call_gets_the_late_result_and_begins_nothing,
        "P4",
    ),
    "what is settled is in doubt no more": Guard(
        calls.tool_finished,
        'if event.outcome != "in_doubt"',
        "if False",
        rules_doubts.test_p4_a_persons_word_goes_through_the_ledger_and_begins_nothing,
        "P4",
    ),
    "a tool whose doubts fail the run does": Guard(
        doubts.leave_unknown,
        'if spec.in_doubt == "fail"',
        "if False",
        rules_doubts.test_p4_a_run_fails_when_its_tool_says_so_and_the_result_stays_unknown,
        "R10",
    ),
    "one death counts once": Guard(
        attempts.count_crash,
        "failure.worker == draft.state.last_death",
        "False",
        runs.test_r12_one_death_counts_once_however_many_attempts_it_cut,
        "R12",
    ),
    "a task may kill so many workers and no more": Guard(
        attempts.count_crash,
        "crashes < draft.state.agent.crashes_max",
        "True",
        runs.test_r12_only_deaths_alone_count_and_the_limit_parks,
        "R12",
    ),
    "a shared death is held against nobody": Guard(
        attempts.count_crash,
        "if not failure.alone",
        "if False",
        runs.test_r12_shared_deaths_do_not_count_but_lead_to_quarantine,
        "R12",
    ),
    "a turn with a crash takes nothing off": Guard(
        closing.complete_turn,
        "if not draft.state.crashed_this_turn",
        "if True",
        runs.test_r12_a_turn_with_a_crash_takes_nothing_off,
        "R12",
    ),
    "a stop with nothing to stop records nothing": Guard(
        admission.stop_requested,
        "if state.about_to_open",
        "if True",
        races.test_a10_a_stop_after_a_failed_end_with_nothing_new_is_no_event,
        "R11",
    ),
    "waits end with their run": Guard(
        admission.wind_down,
        "draft.set_turn(ops=None)",
        "pass",
        field.test_b4_a_stop_while_a_provider_refuses_takes_effect_at_once,
        "R10",
    ),
}


@contextmanager
def without(guard: Guard) -> Iterator[None]:
    """Take the guard out; put it back at the end."""
    function: FunctionType = guard.function
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(guard.old) != 1:
        raise LookupError(f"{function.__qualname__} has {source.count(guard.old)} times {guard.old!r}")
    if source.startswith("@"):
        source = source.partition("\n")[2]
    space = dict(function.__globals__)
    exec(source.replace(guard.old, guard.new), space)  # its own source, with one piece replaced
    kept = function.__code__
    function.__code__ = space[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = kept


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_without_its_guard_the_protecting_test_fails(guard: Guard) -> None:
    needed_by_its_test(guard)


@pytest.mark.parametrize(
    "guard", [g for g in GUARDS.values() if g.number], ids=[n for n, g in GUARDS.items() if g.number]
)
def test_without_its_guard_a_random_life_breaks(guard: Guard) -> None:
    needed_by_random_lives(guard)


def needed_by_its_test(guard: Guard) -> None:
    """See the test that protects it fail without it, and pass with it before and after."""
    guard.test()
    with without(guard), pytest.raises((Exception, pytest.fail.Exception)):
        guard.test()
    guard.test()


def needed_by_random_lives(guard: Guard) -> None:
    """See some random life break its promise without it."""
    with without(guard), pytest.raises((AssertionError, InvariantBroken), match=rf"\b({guard.number}): "):
        many_lives()


def many_lives() -> None:
    """Live until something breaks."""
    for seed in range(LIVES_MAX):
        Life(Random(seed)).live(50)
