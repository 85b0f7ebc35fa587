"""Rules that are not carried out: each effect is taken out of the machine, and tests and random lives miss it.

The guards of `test_guards.py` forbid something; without one, something happens that may not. What is taken out here is
what a rule brings about. Without it nothing happens, which only who knows what is owed can see (`owed.py`).
"""

import pytest

from perdure.core import retry
from perdure.core.machine import admission, attempts, calls, closing, doubts, helping, run, table, turn
from perdure.core.state import TaskState
from tests.core import test_cases_field as field
from tests.core import test_cases_races as races
from tests.core import test_fallbacks as fallbacks
from tests.core import test_rules_calls as of_calls
from tests.core import test_rules_doubts as of_doubts
from tests.core import test_rules_messages as messages
from tests.core import test_rules_questions as questions
from tests.core import test_rules_runs as runs
from tests.core.test_guards import HAS_WORK, Guard, needed_by_its_test, needed_by_random_lives

UNHEARD = "(lambda *_, **__: None)("

EFFECTS = {
    # --- messages -----------------------------------------------------------------------------------------------
    "R1: a move brings a message to the end": Guard(
        admission.moved, ", tail=number", "", races.test_a7_a_parked_steer_asked_for_steer_again_runs, "R1|R5"
    ),
    "R2: an admission makes a message pending": Guard(
        admission.admitted,
        "event.digest) is not None",
        "event.digest) != 0",
        messages.test_r2_parked_is_pending_behind_the_head,
        "R2",
    ),
    "R2: what was admitted after the head runs": Guard(
        TaskState.runnable,
        "pending.tail > self.head",
        "pending.tail > self.head > 0",
        messages.test_r3_a_message_is_promoted_only_once_it_is_stored,
        "R7|R11",
    ),
    "R3: an admitted message is stored": Guard(
        admission.admitted,
        "draft.ask(StoreMessage(message_id=event.message_id))",
        "pass",
        messages.test_r3_a_message_is_promoted_only_once_it_is_stored,
        "R3",
    ),
    "R3: a stored message may be promoted": Guard(
        admission.stored,
        "if p.message_id in ids",
        "if False",
        messages.test_r3_a_message_is_promoted_only_once_it_is_stored,
        "R1",
    ),
    "R4: all steers join": Guard(
        run._steers,
        "for pending in lane:",
        "for pending in lane[:1]:",
        messages.test_r4_all_steers_join_at_the_next_turn_in_order,
        "R4",
    ),
    "R4: steers join after an answer too": Guard(
        run._joining,
        "if steers or",
        "if (steers and not state.run.fed) or",
        messages.test_r4_steers_that_are_not_durable_hold_back_later_ones,
        "R4|R7",
    ),
    "R4: an open run takes what is parked": Guard(
        run._joining,
        'if p.lane == "queue"',
        'if p.lane == "queue" and state.runnable(p)',
        messages.test_r4_the_next_message_takes_everything_parked_with_it,
        "P1|R4|R7",
    ),
    "R4: an answered run ends when nothing waits": Guard(
        run._between,
        "if run.answered:\n            _end",
        "if False:\n            _end",
        races.test_a13_a_message_stopped_right_after_an_answered_end_never_starts_by_itself,
        "R10",
    ),
    "R5: a move is recorded of a steer too": Guard(
        admission.moved,
        "_pending(draft.state, event.message_id)",
        "if _pending(draft.state, event.message_id).lane == 'steer':\n        return",
        messages.test_r5_a_move_is_recorded_even_for_a_steer,
        "R5",
    ),
    "R5: a move starts what was parked": Guard(
        HAS_WORK,
        "self.runnable(p) and",
        "self.runnable(p) and p.tail == p.admitted and",
        races.test_a6_a_parked_message_moved_to_steer_starts_at_once_and_resumes,
        "R7",
    ),
    "R6: a withdrawal takes back": Guard(
        admission.withdrawn,
        "_pending(draft.state, event.message_id)",
        "return",
        messages.test_r6_cancel_withdraws_one_message,
        "R6",
    ),
    "R6: a withdrawal takes back no other": Guard(
        admission.withdrawn,
        "if p.message_id != event.message_id",
        "if False",
        messages.test_r6_cancel_withdraws_one_message,
        "R1",
    ),
    "R6: a run without messages ends": Guard(
        run._between,
        '_end(draft, "stopped", "withdrawn"',
        UNHEARD + 'draft, "stopped", "withdrawn"',
        messages.test_r6_a_run_whose_messages_are_all_taken_back_ends,
        "P7|R7",
    ),
    # --- runs ---------------------------------------------------------------------------------------------------
    "R7: a run opens when there is work": Guard(
        HAS_WORK, "return any(", "return self.runs < 1 and any(", runs.test_r9_an_unanswered_end_starts_nothing, "R7"
    ),
    "R8: a run that winds down ends": Guard(
        run._land, "ending is None or", "True or", runs.test_r8_the_state_says_that_an_end_is_still_owed, "R10"
    ),
    "R8: the first word on how a run ends stands": Guard(
        run._land, "ending.reason,", "'stopped',", runs.test_r10_reason_codes, "R8|R10|R11"
    ),
    "R10: a lost worker is no end": Guard(
        turn.model_failed,
        "if isinstance(next_step, GiveUp)",
        "if isinstance(next_step, GiveUp) or failure.kind == 'shutdown'",
        races.test_a14_a_shutdown_in_a_model_request_resumes_with_no_crash_counted,
        "R10",
    ),
    "R10: a truncated reply ends the run": Guard(
        turn.model_replied,
        'wind_down(draft, Ending(end="failed", reason=reason',
        UNHEARD + 'draft, Ending(end="failed", reason=reason',
        runs.test_r10_reason_codes,
        "R10",
    ),
    "R10: a model that may be asked again is": Guard(
        retry.after_failure,
        "if spent + 1 >= policy.attempts_max",
        "if spent + 2 >= policy.attempts_max",
        fallbacks.test_a_model_that_is_down_past_its_retries_gives_the_turn_to_the_next,
        "R10",
    ),
    "R10: a wait that is over is followed by the attempt": Guard(
        table.backoff_over,
        "if state.run is None or",
        "if True or",
        field.test_b16_retry_after_is_a_floor_and_the_backoff_is_bounded_and_jittered,
        "R10",
    ),
    "R11: a stop stops": Guard(
        admission.stop_requested,
        "if state.terminal:",
        "if True:",
        runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies,
        "R11",
    ),
    "R11: a stop before the run counts": Guard(
        admission.stop_requested,
        "if state.about_to_open:",
        "if False:",
        lambda: races.test_a11_a_stop_accepted_before_the_run_started_parks_the_message(stored=False),
        "R11",
    ),
    "R12: the limit ends the run": Guard(
        attempts.count_crash,
        'wind_down(draft, Ending(end="failed", reason="crash_loop"',
        UNHEARD + 'draft, Ending(end="failed", reason="crash_loop"',
        runs.test_r12_only_deaths_alone_count_and_the_limit_parks,
        "R10|P2",
    ),
    "R12: a turn without a crash takes one off": Guard(
        closing.complete_turn,
        "if not draft.state.crashed_this_turn",
        "if False",
        lambda: runs.test_r12_a_turn_without_a_crash_takes_off_one("result"),
        "R12",
    ),
    "R13: a task that fails unanswered does": Guard(
        run._set_status_after,
        'agent.on_unanswered == "fail"',
        "False",
        runs.test_r13_on_unanswered_fail_is_terminal,
        "R13",
    ),
    "R13: an unanswered end asks for a person": Guard(
        run._set_status_after,
        'draft.set_status("input_required", reason, message)',
        "pass",
        runs.test_r13_after_an_unanswered_end_a_person_is_asked,
        "R13",
    ),
    "R13: the status says why": Guard(
        run._set_status_after,
        'draft.set_status("input_required", reason, message)',
        'draft.set_status("input_required", reason)',
        runs.test_r13_after_an_unanswered_end_a_person_is_asked,
        "R13",
    ),
    "R13: an answer completes as the agent says": Guard(
        run._set_status_after,
        'agent.after_answer == "completed"',
        "False",
        lambda: runs.test_r13_after_an_answer("completed"),
        "R13",
    ),
    "R13: a cancel is terminal": Guard(
        run._set_status_after,
        "if draft.state.canceling:",
        "if False:",
        runs.test_p5_cancel_while_it_winds_down_waits_for_what_flies,
        "P5|R13",
    ),
    # --- calls --------------------------------------------------------------------------------------------------
    "R14: calls that may run beside each other do": Guard(
        calls.start_calls,
        "if any_before and (alone_before or not beside):",
        "if any_before:",
        of_calls.test_r14_calls_run_in_order_and_beside_each_other_only_where_all_allow_it,
        "R14",
    ),
    "R14: a call's result is its own": Guard(
        calls.tool_finished,
        "Outcome(digest=event.digest, status=event.status)",
        'Outcome(digest="another", status=event.status)',
        of_calls.test_r14_results_stand_in_call_order_whatever_their_order_of_completion,
        "R14",
    ),
    "R14: a reply stands in the transcript": Guard(
        turn.model_replied,
        "keeps = event.has_text or bool(event.calls)",
        "keeps = not event.calls",
        runs.test_p9_a_reply_that_comes_after_the_stop_begins_none_of_its_calls,
        "R14",
    ),
    "P4: an open call that was begun is looked up": Guard(
        calls.resume_calls,
        "if call.attempts > 0:",
        "if False:",
        of_calls.test_r14_an_unanswered_run_leaves_calls_that_the_next_one_resolves_first,
        "P4",
    ),
    "P4: what may have happened is not called an error": Guard(
        calls._give_up,
        'if spec.effect == "read":',
        "if True:",
        lambda: of_calls.test_p4_before_it_gives_up_it_finds_out_what_happened("refund"),
        "P4",
    ),
    "P4: a late result is told": Guard(
        turn.model_replied,
        "take_late(draft, event.late)",
        "pass",
        of_doubts.test_p4_a_result_that_comes_late_is_an_event_once,
        "P4",
    ),
    "P4: a run fails where its tool says so": Guard(
        doubts.leave_unknown,
        'if spec.in_doubt == "fail":',
        "if False:",
        of_doubts.test_p4_a_run_fails_when_its_tool_says_so_and_the_result_stays_unknown,
        "R10",
    ),
    # --- promises -----------------------------------------------------------------------------------------------
    "P1: what waits at the end is listed": Guard(
        run._finish,
        "*(pending.message_id for pending in draft.state.inbox)",
        "",
        runs.test_p5_cancel_is_terminal_from_everywhere,
        "P1",
    ),
    "P3: a call keeps its tool's class": Guard(
        calls.tool_command,
        "effect=spec.effect",
        'effect="read"',
        of_calls.test_p3_every_attempt_at_a_call_has_its_key,
        "P3",
    ),
    "P5: the end is persisted": Guard(
        run._end,
        "draft.ask(Persist(terminal=draft.state.terminal))",
        "pass",
        lambda: runs.test_r13_after_an_answer("completed"),
        "P5",
    ),
    "P6: every attempt is in the log": Guard(
        calls.call_tool,
        'draft.log("tool.started"',
        UNHEARD + '"tool.started"',
        of_calls.test_p3_every_attempt_at_a_call_has_its_key,
        "P2",
    ),
    "P8: a question that expires is over": Guard(
        helping.expired,
        "if request is None or",
        "if True or",
        questions.test_a_question_that_nobody_answers_in_time_is_closed_and_the_model_is_told,
        "P8",
    ),
    "P9: what flies is told to stop": Guard(
        admission.wind_down,
        "draft.ask(StopFlights())",
        "pass",
        runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies,
        "R10",
    ),
    "P9: the fence is that of the run": Guard(
        admission.wind_down,
        "Fence(run=draft.run.number)",
        "Fence(run=draft.run.number - 1)",
        runs.test_p9_a_stop_fences_its_run_and_reaches_what_flies,
        "P9",
    ),
    "P10: the first loss is made good at once": Guard(
        retry.after_loss,
        'losses == 0 and kind != "store"',
        "False",
        races.test_a14_a_shutdown_in_a_model_request_resumes_with_no_crash_counted,
        "P10",
    ),
    "P7: losses in a row wait": Guard(
        attempts.next_attempt,
        "0 if again.spends else",
        "0 if True else",
        field.test_b3_shutdown_and_death_both_resume,
        "P10",
    ),
}


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_without_the_effect_the_protecting_test_fails(effect: Guard) -> None:
    needed_by_its_test(effect)


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_without_the_effect_a_random_life_misses_it(effect: Guard) -> None:
    needed_by_random_lives(effect)
