"""What must be true, and the tests that show it: one row per promise and rule, checked both ways.

`tests/test_requirements.py` sees that every named test exists, that every row has one, and that every test named
after a number (`test_p3_…`, `test_r9_…`) stands in that number's row.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Requirement:
    """A promise (P) or rule (R). `tests` are `path::function`; `missing` says what is not proved yet, and why."""

    text: str
    tests: tuple[str, ...] = field(default=())
    missing: str = ""


REQUIREMENTS: dict[str, Requirement] = {
    "P1": Requirement(
        "No lost input: an acknowledged message is acted on once, in lane order, or taken back, or listed as open.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "outage/test_temporal_killed.py::test_nothing_acknowledged_is_lost_when_the_server_is_killed_ten_times",
            "core/test_rules_messages.py::test_p1_a_waiting_message_is_recognised_however_long_it_waits",
            "core/test_rules_messages.py::test_p1_the_same_id_with_other_content_is_refused",
            "core/test_rules_messages.py::test_p1_the_same_message_again_changes_nothing",
            "core/test_rules_messages.py::test_p1_the_terminal_row_lists_what_was_not_acted_on",
            "temporal/test_inbox.py::test_a_resend_changes_nothing_and_other_content_is_refused",
            "temporal/test_inbox.py::test_an_id_from_long_ago_is_looked_up_in_the_store",
            "temporal/test_inbox.py::test_many_senders_at_once_lose_nothing",
            "temporal/test_inbox.py::test_early_messages_join_the_starts_own",
            "retail/test_conversations.py::test_no_kill_makes_a_difference",
            "temporal/test_store_failures.py::test_a_send_says_at_once_that_the_store_fails_and_a_resend_tells",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
            "a2a/test_served.py::test_a_server_killed_while_it_accepts_leaves_neither_ghost_nor_orphan",
            "cli/client/test_killed.py::test_p1_a_message_whose_answer_was_lost_is_given_again_and_is_one_task",
            "cli/client/test_lost.py::test_a_message_is_given_again_where_it_is_known_again",
            "cli/client/test_lost.py::test_elsewhere_only_what_was_not_taken_in_is_given_again",
            "a2a/test_served.py::test_a_message_that_was_accepted_is_there_at_once_and_runs_when_a_worker_comes",
            "a2a/test_operations.py::test_a_question_is_answered_by_a_message_once",
            "core/test_answers_by_message.py::test_p1_a_message_that_answers_nothing_sensible_is_not_remembered",
            "core/test_answers_by_message.py::test_p1_a_message_that_answers_the_model_is_remembered",
            "core/test_answers_by_message.py::test_p1_a_message_that_says_what_became_of_a_call_is_remembered",
            "a2a/test_operations.py::test_many_messages_at_once_arrive_once_each_in_few_updates",
        ),
    ),
    "P2": Requirement(
        "No repeated answer: a recorded model answer is never asked for again; a cut call is a new, visible attempt.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "temporal/test_crash.py::test_killed_in_the_middle_of_everything",
            "store/test_model_calls.py::test_the_first_reply_stands_and_later_attempts_get_it",
            "temporal/test_crash.py::test_killed_between_a_commit_and_its_telling",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
        ),
    ),
    "P3": Requirement(
        "No repeated effect: a call not safe to repeat is begun once, or again after its check closed the key.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "outage/test_temporal_killed.py::test_nothing_acknowledged_is_lost_when_the_server_is_killed_ten_times",
            "core/test_rules_calls.py::test_p3_a_closed_key_is_followed_by_the_next",
            "core/test_rules_messages.py::test_p3_a_task_id_that_could_share_keys_is_refused",
            "core/test_effects.py::test_p3_another_request_under_the_same_key_is_refused",
            "core/test_rules_calls.py::test_p3_every_attempt_at_a_call_has_its_key",
            "core/test_effects.py::test_p3_keys_differ_in_every_part",
            "retail/test_conversations.py::test_no_kill_makes_a_difference",
            "temporal/test_crash.py::test_killed_in_the_middle_of_everything",
            "store/test_processes.py::test_of_two_processes_exactly_one_begins_a_once_call",
            "tools/test_outcomes.py::test_p3_every_outcome_at_every_moment",
            "tools/test_once.py::test_p3_a_request_that_comes_after_its_key_was_closed_changes_nothing",
            "tools/test_once.py::test_p3_killed_after_the_commit_it_happened_once_with_its_result",
            "tools/test_once.py::test_p3_killed_between_effect_and_commit_nothing_happened_and_it_begins_anew",
            "tools/test_once.py::test_p3_of_two_transactions_with_one_key_the_second_waits_for_the_first",
            "demo/test_demo.py::test_killed_twice_the_customer_gets_one_replacement",
            "store/test_effects.py::test_a_once_call_is_begun_once_and_then_in_doubt",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
        ),
    ),
    "P4": Requirement(
        "No guessed effect: what cannot be known is asked of the tool's check, else said to be unknown.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "core/test_rules_calls.py::test_p4_a_call_that_only_reads_and_fails_is_an_error",
            "core/test_rules_calls.py::test_p4_a_call_that_only_reads_leaves_no_doubt",
            "core/test_rules_calls.py::test_p4_a_retry_beside_a_doubted_twin_only_resolves",
            "core/test_rules_calls.py::test_p4_an_unknown_outcome_is_said_and_never_begun_again",
            "core/test_rules_calls.py::test_p4_before_it_gives_up_it_finds_out_what_happened",
            "core/test_rules_calls.py::test_p4_twins_of_a_doubted_call_begin_under_no_new_key",
            "core/test_rules_calls.py::test_p4_when_even_that_fails_the_outcome_is_unknown",
            "core/test_rules_doubts.py::test_p4_a_result_under_a_closed_key_is_an_event_too",
            "core/test_rules_doubts.py::test_p4_a_late_result_that_nobody_was_told_of_still_stands_against_the_same_call",
            "core/test_rules_doubts.py::test_p4_the_same_call_gets_the_late_result_and_begins_nothing",
            "core/test_rules_doubts.py::test_p4_a_result_that_comes_late_is_an_event_once",
            "core/test_rules_doubts.py::test_p4_a_doubt_that_a_later_run_settles_is_lifted",
            "core/test_rules_doubts.py::test_p4_a_person_is_asked_what_became_of_a_call_and_it_stays_open",
            "core/test_rules_doubts.py::test_p4_a_persons_word_goes_through_the_ledger_and_begins_nothing",
            "core/test_rules_doubts.py::test_p4_a_result_that_was_recorded_meanwhile_wins_over_the_word",
            "core/test_rules_doubts.py::test_p4_a_run_fails_when_its_tool_says_so_and_the_result_stays_unknown",
            "core/test_rules_doubts.py::test_p4_a_run_that_fails_leaves_its_other_calls_to_the_next",
            "core/test_rules_doubts.py::test_p4_a_stopped_question_is_asked_anew_by_the_next_run",
            "core/test_rules_doubts.py::test_p4_a_word_that_could_not_be_carried_is_asked_for_again",
            "core/test_rules_doubts.py::test_p4_a_word_that_says_neither_is_refused_and_changes_nothing",
            "core/test_rules_doubts.py::test_p4_in_a_run_that_is_stopped_the_outcome_is_unknown_and_the_stop_stands",
            "core/test_rules_doubts.py::test_p4_what_did_not_happen_is_told_and_may_be_asked_for_again",
            "core/test_rules_doubts.py::test_p4_while_a_person_is_asked_the_same_call_is_not_begun",
            "retail/test_conversations.py::test_no_kill_makes_a_difference",
            "temporal/test_doubts.py::test_a_person_says_that_it_happened",
            "tools/test_word.py::test_p4_a_recorded_result_wins_over_a_persons_word",
            "tools/test_word.py::test_p4_the_first_word_stands_whatever_is_said_later",
            "temporal/test_doubts.py::test_the_run_fails_and_says_which_outcome_is_unknown",
            "temporal/test_stopping.py::test_a_stopped_call_is_resolved_by_its_check",
            "tools/test_once.py::test_p4_a_check_waits_for_a_transaction_that_is_rolled_back_and_closes_the_key",
            "temporal/test_failures.py::test_a_tool_that_raises_is_tried_again_as_its_class_allows",
            "store/test_effects.py::test_a_closed_key_keeps_refusing_and_its_late_result_is_seen",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
        ),
    ),
    "P5": Requirement(
        "One end: each run ends once, each task has one terminal state, stored before the workflow returns.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "core/test_rules_store.py::test_p5_a_terminal_state_stays_one",
            "outage/test_temporal_killed.py::test_nothing_acknowledged_is_lost_when_the_server_is_killed_ten_times",
            "core/test_rules_runs.py::test_p5_a_task_is_created_once",
            "core/test_cases_races.py::test_p5_after_the_terminal_state_nothing_is_taken_in",
            "core/test_rules_runs.py::test_p5_cancel_is_terminal_from_everywhere",
            "core/test_rules_runs.py::test_p5_cancel_while_it_winds_down_waits_for_what_flies",
            "temporal/test_stopping.py::test_a_cancel_is_terminal_whoever_asks",
            "temporal/test_stopping.py::test_cancel_exactly_when_an_activity_completes",
            "temporal/test_inbox.py::test_a_terminal_task_in_the_store_starts_nothing_again",
            "store/test_log.py::test_nothing_follows_a_terminal_status",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
        ),
    ),
    "P6": Requirement(
        "Gapless events: numbered 1, 2, 3…; who saw n gets n+1, across restarts and continue-as-new.",
        (
            "outage/test_everything_killed.py::test_the_next_start_finishes_what_was_left",
            "outage/test_temporal_killed.py::test_nothing_acknowledged_is_lost_when_the_server_is_killed_ten_times",
            "temporal/test_path.py::test_store_and_workflow_agree_on_every_row",
            "temporal/test_continuing.py::test_sixty_turns_over_several_histories_are_one_task",
            "store/test_log.py::test_readers_get_the_contiguous_prefix_only",
            "store/test_concurrency.py::test_rows_written_in_any_order_at_once_leave_no_gap",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
            "a2a/test_served.py::test_a_client_misses_nothing_while_everything_is_killed",
            "cli/client/test_killed.py::test_p6_send_and_watch_go_on_after_the_server_was_killed",
            "cli/client/test_killed.py::test_killed_at_random_moments_the_numbers_are_one_to_n",
            "a2a/test_seeds.py::test_what_a_client_saw_is_exactly_one_to_n",
            "a2a/test_operations.py::test_a_stream_begins_with_the_task_and_misses_no_number",
            "a2a/test_push.py::test_p6_every_event_is_delivered_in_order_with_what_the_client_gave",
            "a2a/test_push_served.py::"
            "test_p6_killed_between_taken_and_cursor_the_same_is_sent_again_and_nothing_is_missed",
        ),
    ),
    "P7": Requirement(
        "Bounded: everything has a limit, in one file, with its reason; history per turn does not grow.",
        (
            "core/test_rules_calls.py::test_p7_deaths_close_more_keys_than_failures_and_come_to_an_end_too",
            "core/test_rules_calls.py::test_p7_doubts_are_bounded",
            "core/test_retry.py::test_p7_every_delay_is_bounded",
            "core/test_rules_calls.py::test_p7_keys_that_close_again_and_again_come_to_an_end",
            "core/test_rules_doubts.py::test_p7_the_closed_keys_that_are_watched_are_bounded",
            "core/test_rules_messages.py::test_p7_the_inbox_is_bounded",
            "core/test_cases_field.py::test_p7_the_state_does_not_grow_with_the_conversation",
            "temporal/test_path.py::test_a_turn_costs_two_activities_and_no_input_grows",
            "temporal/test_failures.py::test_large_results_are_kept_and_shown_cut",
            "temporal/test_inbox.py::test_a_full_inbox_refuses_and_says_so",
        ),
    ),
    "P8": Requirement(
        "Quiet waiting: a task that waits for a person uses no worker, no activity and no timer.",
        (
            "demo/test_demo.py::test_killed_only_while_waiting_every_activity_has_one_attempt",
            "core/test_rules_doubts.py::test_p8_what_waits_behind_a_question_waits_for_the_person_too",
            "temporal/test_crash.py::test_an_idle_workers_death_delays_nothing",
        ),
    ),
    "P9": Requirement(
        "Stop means stop: after an acknowledged stop no call of that run begins.",
        (
            "core/test_rules_calls.py::test_p9_a_full_account_of_doubts_begins_nothing_more_in_its_turn",
            "core/test_rules_doubts.py::test_p9_a_run_that_ends_asks_nobody",
            "core/test_rules_doubts.py::test_p9_a_word_that_comes_while_the_run_ends_is_carried_by_the_next",
            "core/test_rules_runs.py::test_p9_a_reply_that_comes_after_the_stop_begins_none_of_its_calls",
            "core/test_rules_runs.py::test_p9_a_run_that_winds_down_is_continued_behind_its_fence",
            "core/test_rules_runs.py::test_p9_a_stop_fences_its_run_and_reaches_what_flies",
            "core/test_rules_runs.py::test_p9_nothing_is_asked_once_the_run_is_out_of_time",
            "temporal/test_stopping.py::test_after_an_acknowledged_stop_nothing_reaches_the_outside",
            "temporal/test_store_failures.py::test_a_stop_is_not_acknowledged_before_its_fence_stands",
            "temporal/test_stopping.py::test_during_a_backoff_no_further_request_is_made",
            "crash/test_fence.py::test_an_attempt_that_hears_of_no_stop_is_fenced",
        ),
    ),
    "P10": Requirement(
        "Fast recovery: a supervised worker's death is acted on at once.",
        (
            "core/test_retry.py::test_p10_the_first_loss_in_a_row_does_not_wait",
            "supervisor/test_deaths.py::test_p10_a_death_is_acted_on_at_once_and_takes_what_was_started_along",
            "supervisor/test_deaths.py::test_a_stopped_worker_is_never_declared_dead",
            "supervisor/test_report.py::test_a_completion_that_races_the_report_leaves_one_result",
            "demo/test_demo.py::test_killed_twice_the_customer_gets_one_replacement",
        ),
    ),
    "P11": Requirement(
        "Same decisions: a replay gives the same commands in the same order with the same arguments.",
        (
            "temporal/test_replay.py::test_an_eventful_task_replays_with_and_without_the_core_passed_through",
            "temporal/test_replay.py::test_a_machine_that_decides_otherwise_is_seen",
            "temporal/test_replay.py::test_a_start_that_says_otherwise_is_seen",
            "temporal/test_recorded.py::test_p11_a_task_that_began_under_earlier_code_decides_the_same",
            "temporal/test_recorded.py::test_a_row_that_says_more_than_it_said_then_is_seen",
        ),
        missing="The replay check that ships comes later.",
    ),
    "R1": Requirement(
        "tail is the number of admission or latest move; head that of the latest end without an answer.",
        (
            "core/test_rules_messages.py::test_r1_an_answered_end_leaves_the_head",
            "core/test_rules_messages.py::test_r1_tail_is_the_admission_until_a_move",
        ),
    ),
    "R2": Requirement(
        "Pending until promoted or withdrawn; runnable with tail > head, else parked.",
        ("core/test_rules_messages.py::test_r2_parked_is_pending_behind_the_head",),
    ),
    "R3": Requirement(
        "Admission is durable before it is acknowledged; promotion and transcript entry are one step.",
        (
            "core/test_rules_messages.py::test_r3_a_message_is_promoted_only_once_it_is_stored",
            "core/test_rules_messages.py::test_r3_an_answer_waits_for_messages_that_are_not_durable_yet",
            "core/test_rules_messages.py::test_r3_promotion_and_entry_are_one_row",
            "temporal/test_store_failures.py::test_a_send_says_at_once_that_the_store_fails_and_a_resend_tells",
        ),
    ),
    "R4": Requirement(
        "Steers join at the top of the next turn, queued messages one at a time after an answer.",
        (
            "core/test_rules_messages.py::test_r4_all_steers_join_at_the_next_turn_in_order",
            "core/test_rules_messages.py::test_r4_queued_messages_join_one_at_a_time_after_an_answer",
            "core/test_rules_messages.py::test_r4_steers_that_are_not_durable_hold_back_later_ones",
            "core/test_rules_messages.py::test_r4_the_next_message_takes_everything_parked_with_it",
        ),
    ),
    "R5": Requirement(
        "A move to steer is recorded, and moves the tail, even for a message already there.",
        ("core/test_rules_messages.py::test_r5_a_move_is_recorded_even_for_a_steer",),
    ),
    "R6": Requirement(
        "Cancel withdraws one message; stop ends the run and parks what is pending.",
        (
            "core/test_rules_messages.py::test_r6_a_run_whose_messages_are_all_taken_back_ends",
            "core/test_rules_messages.py::test_r6_cancel_withdraws_one_message",
            "core/test_rules_messages.py::test_r6_taking_back_what_does_not_wait_is_refused",
        ),
    ),
    "R7": Requirement(
        "A wake is a hint: no run opens without work.",
        ("core/test_rules_messages.py::test_r7_no_run_opens_without_work",),
    ),
    "R8": Requirement(
        "run.started is logged before any promotion; exactly one end follows.",
        (
            "core/test_rules_runs.py::test_r8_run_started_comes_before_any_promotion_and_one_end_after",
            "core/test_rules_runs.py::test_r8_the_state_says_that_an_end_is_still_owed",
        ),
    ),
    "R9": Requirement(
        "An end without an answer starts nothing; what is admitted after its commit is runnable.",
        ("core/test_rules_runs.py::test_r9_an_unanswered_end_starts_nothing",),
    ),
    "R10": Requirement(
        "Ends are answered, failed with a reason, stopped; an interruption is none.",
        (
            "core/test_rules_runs.py::test_r10_a_truncated_reply_begins_none_of_its_calls",
            "core/test_rules_runs.py::test_r10_an_empty_reply_answers_with_nothing",
            "core/test_rules_runs.py::test_r10_reason_codes",
        ),
    ),
    "R11": Requirement(
        "A stop is recorded when a run is open or about to open; a stopped task stays stopped.",
        (
            "core/test_rules_runs.py::test_r11_a_second_stop_records_nothing_more",
            "core/test_rules_runs.py::test_r11_with_nothing_to_stop_nothing_is_recorded",
        ),
    ),
    "R12": Requirement(
        "Only proven deaths alone count; shared ones lead to quarantine; at the limit failed(crash_loop).",
        (
            "core/test_rules_runs.py::test_r12_a_clean_shutdown_counts_nothing_and_does_not_wait",
            "core/test_rules_runs.py::test_r12_a_turn_with_a_crash_takes_nothing_off",
            "core/test_rules_runs.py::test_r12_a_turn_without_a_crash_takes_off_one",
            "core/test_rules_runs.py::test_r12_after_a_crash_loop_the_task_stays_in_quarantine",
            "core/test_rules_runs.py::test_r12_one_death_counts_once_however_many_attempts_it_cut",
            "core/test_rules_runs.py::test_r12_only_deaths_alone_count_and_the_limit_parks",
            "core/test_rules_runs.py::test_r12_shared_deaths_do_not_count_but_lead_to_quarantine",
            "temporal/test_shutdown.py::test_during_a_model_call",
            "supervisor/test_quarantine.py::test_r12_a_poison_task_ends_at_its_limit_and_its_neighbours_finish_uncounted",
            "supervisor/test_report.py::test_a_death_counts_against_the_one_that_was_alone",
            "supervisor/test_ends.py::test_sigterm_drains_and_counts_no_crash",
        ),
    ),
    "R13": Requirement(
        "After an unanswered end the task waits for input and goes on, or fails by setting.",
        (
            "core/test_rules_store.py::test_r13_a_store_that_disagrees_parks_the_task_whatever_its_setting",
            "core/test_rules_store.py::test_r13_a_call_that_finds_the_store_different_parks_the_task_too",
            "core/test_rules_store.py::test_r13_a_resting_task_is_shown_as_parked_and_goes_on_with_the_next_message",
            "core/test_rules_store.py::test_r13_a_question_to_a_person_is_closed_by_it",
            "core/test_rules_runs.py::test_r13_after_an_answer",
            "core/test_rules_runs.py::test_r13_after_an_unanswered_end_a_person_is_asked",
            "core/test_rules_runs.py::test_r13_on_unanswered_fail_is_terminal",
            "temporal/test_failures.py::test_a_refused_request_ends_the_run_and_the_next_message_goes_on",
            "temporal/test_failures.py::test_an_agent_may_fail_its_task_instead",
        ),
    ),
    "R14": Requirement(
        "A tool call has exactly one result before the next model call.",
        (
            "models/test_wire_requests.py::test_r14_a_broken_transcript_is_not_sent",
            "core/test_rules_calls.py::test_r14_a_call_that_must_run_alone_waits_also_for_one_that_is_looked_up",
            "core/test_rules_calls.py::test_r14_a_call_that_was_resolved_again_and_again_keeps_one_result",
            "core/test_rules_calls.py::test_r14_an_unanswered_run_leaves_calls_that_the_next_one_resolves_first",
            "core/test_rules_calls.py::test_r14_calls_beyond_the_limit_get_an_error_each",
            "core/test_rules_calls.py::test_r14_calls_run_in_order_and_beside_each_other_only_where_all_allow_it",
            "core/test_rules_calls.py::test_r14_no_model_call_before_the_last_result",
            "core/test_rules_calls.py::test_r14_results_stand_in_call_order_whatever_their_order_of_completion",
            "temporal/test_failures.py::test_one_of_three_in_parallel_raises_and_drops_no_sibling",
            "crash/test_points.py::test_killed_at",
            "crash/test_commits.py::test_killed_after_every_commit",
        ),
    ),
    "R15": Requirement(
        "State shapes carry a version; old samples can be read.",
        (
            "core/test_state_samples.py::test_r15_samples_of_every_version_can_be_read",
            "core/test_state_samples.py::test_r15_the_present_version_has_a_sample_of_every_mode",
            "core/test_state_samples.py::test_r15_unknown_fields_and_versions_are_refused",
        ),
    ),
}
