"""The cases, as data: which test plays each, and which shows that it is lost without its rule.

A row for each case of kind A, and for those from the field that are about messages, stops, cancels and approvals.
`test_cases.py` checks it both ways. Each race of A has guards: tests that take its rule out and see it lost. `STAGED`
takes out what is declared where the race is played (`dies(…, without=…)`).

Where nothing depends on processes, none are played. Which end a client takes for its own (A17) is decided by a pure
reader of events: one connection keeps their order, so what comes out of order is only what several of them bring, and
every order of arrival is more than any of them makes. That the commands go by that reader is shown with a server that
is really killed while they follow.
"""

from dataclasses import dataclass

STAGED = "races/test_rules.py::test_without_its_rule_the_race_comes_out_wrong"
CORE = "core/test_guards.py::test_without_its_guard_the_protecting_test_fails"
ASKING = "core/test_guards_asking.py::test_without_its_guard_the_protecting_test_fails"
CRASH = "crash/test_guards.py::test_without_it_the_test_fails"
PARKED, STOPPED, GOING_ON = "races/test_parked.py", "races/test_stopped.py", "races/test_going_on.py"


@dataclass(frozen=True)
class Case:
    """What must come out right. `missing` says what is not played yet, and why."""

    outcome: str
    tests: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    missing: str = ""


CASES: dict[str, Case] = {
    "A1": Case(
        "Queued and moved while a run was failing: both are parked, the next message runs them all.",
        (f"{PARKED}::test_a1_what_came_while_a_run_failed_is_parked_and_the_next_message_runs_all",),
        (STAGED,),
    ),
    "A2": Case(
        "Admitted while a run is set up: not lost, acted on once.",
        (f"{GOING_ON}::test_a2_a_message_admitted_while_a_run_is_set_up_is_acted_on_once",),
        (STAGED,),
    ),
    "A3": Case(
        "Killed in the run after a failed end: it resumes.",
        (f"{GOING_ON}::test_a3_a_run_opened_after_a_failed_end_resumes",),
        (STAGED,),
    ),
    "A4": Case(
        "With a parked follow-up, killed before the run started: the follow-up goes first, nothing is asked again.",
        (f"{PARKED}::test_a4_a_parked_follow_up_goes_first_and_the_old_reply_is_not_asked_for_again",),
        (STAGED,),
    ),
    "A5": Case(
        "Queued before a stop and sent while it winds down: parked.",
        (f"{PARKED}::test_a5_what_was_queued_before_a_stop_and_sent_while_it_winds_down_is_parked",),
        (STAGED,),
    ),
    "A6": Case(
        "A parked message moved to steer had started at once, and resumes.",
        (f"{PARKED}::test_a6_a_parked_message_moved_to_steer_had_started_at_once_and_resumes",),
        (STAGED,),
    ),
    "A7": Case(
        "A parked steer asked for the steer lane again: its tail moves and it runs.",
        (f"{PARKED}::test_a7_a_parked_steer_asked_for_the_steer_lane_again_runs",),
        (STAGED,),
    ),
    "A8": Case(
        "A parked message sent again, then a restart: nothing changes.",
        (f"{PARKED}::test_a8_a_parked_message_that_is_sent_again_changes_nothing",),
        (STAGED,),
    ),
    "A9": Case(
        "A stop while the failed end commits: one end.",
        (f"{STOPPED}::test_a9_a_stop_while_the_failed_end_commits_makes_one_end",),
        (STAGED,),
    ),
    "A10": Case(
        "A stop after a failed end with nothing new: no event.",
        (f"{STOPPED}::test_a10_a_stop_after_a_failed_end_with_nothing_new_is_no_event",),
        (STAGED,),
    ),
    "A11": Case(
        "A stop accepted before the run started: recorded, the message is parked.",
        (f"{STOPPED}::test_a11_a_stop_accepted_before_the_run_opened_counts_and_parks_the_message",),
        (STAGED,),
    ),
    "A12": Case(
        "Cut off by a crash, then stopped through a live worker (without one: unavailable): it stays stopped.",
        (f"{STOPPED}::test_a12_a_run_that_a_crash_cut_off_and_that_is_stopped_stays_stopped",),
        (STAGED,),
    ),
    "A13": Case(
        "Admitted and stopped right after an answered end: parked, never starts by itself.",
        (f"{STOPPED}::test_a13_a_message_stopped_right_after_an_answered_end_never_starts_by_itself",),
        (STAGED,),
    ),
    "A14": Case(
        "An orderly end during a model request: resumes with no crash counted, before the provider replies.",
        (
            f"{GOING_ON}::test_a14_a_shutdown_during_a_model_request_resumes_with_no_crash_counted",
            "supervisor/test_ends.py::test_sigterm_drains_and_counts_no_crash",
            "temporal/test_shutdown.py::test_during_a_model_call",
        ),
        (STAGED,),
    ),
    "A15": Case(
        "A tool that kills its worker each time: quarantined, failed exactly at the limit, neighbours untouched.",
        (
            f"{GOING_ON}::"
            "test_a15_a_task_that_kills_its_worker_each_time_ends_at_its_limit_and_costs_its_neighbour_nothing",
            "supervisor/test_quarantine.py::"
            "test_r12_a_poison_task_ends_at_its_limit_and_its_neighbours_finish_uncounted",
            "crash/test_limit.py::test_r12_a_task_that_kills_its_worker_each_time_ends_at_its_limit",
        ),
        (STAGED, CRASH),
    ),
    "A16": Case(
        "A stop, then a crash: stays stopped.",
        (f"{STOPPED}::test_a16_a_stop_and_then_a_crash_stays_stopped",),
        (STAGED,),
    ),
    "A17": Case(
        "Notifications out of order around a failure: the client ends on the right one, by number.",
        (
            "cli/client/test_ends.py::test_around_a_failure_every_order_of_arrival_comes_out_alike",
            "cli/client/test_lives.py::test_every_message_comes_to_the_end_of_its_own_run_in_any_order",
            "cli/client/test_killed.py::test_p6_send_and_watch_go_on_after_the_server_was_killed",
        ),
        ("races/test_clients.py::test_a17_a_client_that_goes_by_arrival_ends_on_the_wrong_one",),
    ),
    "A18": Case(
        "`perdure send` while the run fails: exits non-zero with the reason, never hangs.",
        ("cli/client/test_served.py::test_a18_a_run_that_fails_ends_the_command_with_its_reason",),
        ("races/test_clients.py::test_a18_a_client_that_takes_any_end_for_an_answer_is_wrong",),
    ),
    "A19": Case(
        "The connection to Temporal is cut in the middle of a run, then slow: no loss, no duplicate.",
        ("races/test_cut.py::test_a19_cut_off_and_then_slow_nothing_is_lost_and_nothing_is_done_twice",),
        ("races/test_cut.py::test_a19_without_the_look_into_the_ledger_the_cut_call_is_made_twice",),
    ),
    "A20": Case(
        "Everything is killed, or shut down in order, and started again: it goes on, the latter uncounted.",
        (
            "races/test_machine.py::test_a20_the_machine_goes_down_and_boots",
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "supervisor/test_ends.py::test_a_killed_supervisor_takes_everything_along_and_the_next_start_resumes",
        ),
        ("races/test_machine.py::test_a20_told_as_crashes_the_losses_would_count", CRASH),
    ),
    "A21": Case(
        "One taken back, a stop, a new message: only the new one runs.",
        (f"{STOPPED}::test_a21_of_one_taken_back_one_stopped_and_one_new_message_only_the_new_one_runs",),
        (STAGED,),
    ),
    "B1": Case(
        "A stop during a tool, then a new message: the new run contains it, it is no answer to something else.",
        (
            f"{STOPPED}::test_b1_a_message_after_a_stop_in_the_middle_of_a_tool_is_in_the_next_run",
            "races/test_questions.py::test_b1_a_message_with_a_lane_is_no_answer_to_the_question_that_is_open",
        ),
        (STAGED,),
    ),
    "B2": Case(
        "A steer just as the run ends: the server decides, and it is acted on once.",
        (f"{PARKED}::test_b2_a_steer_that_comes_as_the_run_ends_is_acted_on_once",),
        (STAGED,),
    ),
    "B3": Case(
        "SIGTERM and SIGKILL in the middle of a run: both resume.",
        ("supervisor/test_ends.py::test_sigterm_drains_and_counts_no_crash", "crash/test_points.py::test_killed_at"),
        (CRASH,),
    ),
    "B4": Case(
        "A provider refuses for minutes and the user stops: at once, no further request.",
        (
            f"{STOPPED}::test_b4_a_stop_while_a_provider_refuses_takes_effect_at_once",
            "temporal/test_stopping.py::test_during_a_backoff_no_further_request_is_made",
        ),
        (STAGED,),
    ),
    "B5": Case(
        "A cancel exactly when an activity completes, a hundred times: one terminal state each.",
        (
            f"{STOPPED}::test_b5_a_cancel_exactly_when_an_activity_completes_makes_one_terminal_state",
            "temporal/test_stopping.py::test_cancel_exactly_when_an_activity_completes",
        ),
        (CORE,),
    ),
    "B6": Case(
        "A message that arrives before anything is cached takes effect.",
        (f"{GOING_ON}::test_b6_a_message_that_arrives_before_anything_is_cached_takes_effect",),
        (STAGED,),
    ),
    "B10": Case(
        "A declined call never runs; one approved twice runs once.",
        (
            "core/test_rules_approvals.py::test_b10_a_declined_call_never_runs_and_the_model_is_told_why",
            "crash/test_asking.py::test_a_call_that_nobody_approves_never_runs_wherever_its_worker_dies",
            "crash/test_asking.py::test_an_approved_call_runs_once_wherever_its_worker_dies",
        ),
        (ASKING,),
    ),
    "B22": Case(
        "Two approvals of one call are consumed once.",
        (
            "core/test_rules_approvals.py::test_b22_of_two_approvals_the_first_counts_and_the_second_is_refused",
            "temporal/test_approvals.py::test_two_people_approve_one_call_at_once_and_it_runs_once",
            "temporal/test_late_words.py::test_b22_of_two_words_by_message_the_second_is_refused_and_the_first_again_is_known",
            "cli/test_prompt.py::test_b22_a_line_typed_early_does_not_approve_the_next_call",
            "crash/test_asking.py::test_an_approved_call_runs_once_wherever_its_worker_dies",
        ),
        (ASKING,),
    ),
    "B23": Case(
        "A client leaves in the middle of a blocking send: the task goes on.",
        ("a2a/test_served.py::test_a_client_that_leaves_changes_nothing_and_costs_nothing",),
    ),
    "B25": Case(
        "The store fails during a send: an error at once, and a resend tells.",
        (
            "temporal/test_store_failures.py::test_a_send_says_at_once_that_the_store_fails_and_a_resend_tells",
            "a2a/test_store_failing.py::test_a_further_message_stays_admitted_and_a_resend_tells",
        ),
    ),
}
