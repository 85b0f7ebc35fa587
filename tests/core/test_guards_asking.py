"""Guards of questions and approvals are executable too: each is taken out, and what protects it is seen to fail."""

import pytest

from perdure.core import approvals, questions, rulebook, shortening
from perdure.core.machine import approving, asking, calls, draft, helping, turn
from tests.core import test_asking as middle
from tests.core import test_rulebook as rules
from tests.core import test_rules_approvals as asked
from tests.core import test_rules_calls as calls_of
from tests.core import test_rules_questions as put
from tests.core import test_visibility as seen
from tests.core.test_guards import Guard, needed_by_its_test, needed_by_random_lives

GUARDS = {
    "a call that needs an approval waits for one": Guard(
        approving.needs_approval,
        "asks and call.approval is None",
        "False",
        asked.test_a_call_waits_for_approval_and_nothing_of_it_begins,
        "P3",
    ),
    "nothing begins without its approval": Guard(
        approving.refuse_unapproved,
        "call.approval is None or call.approval.digest != digest",
        "False",
        asked.test_p3_without_its_approval_a_call_does_not_begin,
    ),
    "an approval is bound to tool and arguments": Guard(
        approvals.call_digest,
        '"tool": tool, "call": arguments_digest, ',
        "",
        asked.test_b22_an_approval_is_for_one_call_and_not_for_the_next_one_like_it,
        "P3",
    ),
    "an approval is bound to the key": Guard(
        approvals.call_digest,
        ', "key": key',
        "",
        asked.test_b22_an_approval_is_for_one_call_and_not_for_the_next_one_like_it,
        "P3",
    ),
    "the worker looks at the arguments themselves": Guard(
        approvals.approves,
        "approval.digest ==",
        "True or",
        asked.test_b22_an_approval_is_for_one_call_and_not_for_the_next_one_like_it,
    ),
    "what was shown is what is approved": Guard(
        approving.take_decision,
        "not request.digest.startswith(decision.digest)",
        "False",
        asked.test_an_approval_that_names_another_call_is_refused,
    ),
    "a bare word is taken for the only approval alone": Guard(
        helping.meant_by,
        " and state.approvals == 1",
        "",
        asked.test_b22_a_late_word_that_says_no_call_does_not_approve_the_next_one,
    ),
    "a bare word says nothing where two things wait": Guard(
        helping.meant_by,
        "len(open_now) == 1 and ",
        "",
        asked.test_a_bare_word_beside_a_question_says_no_call,
    ),
    "the status says for what the task waits now": Guard(
        draft.Draft.set_status,
        ' and not (reason == "help" and self.asks_other)',
        "",
        put.test_a_task_that_waits_for_another_answer_says_for_which,
    ),
    "a doubt about a changed call shows what ran": Guard(
        approving.take_decision,
        "if changed is not None",
        "if False",
        asked.test_b22_of_a_changed_call_in_doubt_is_asked_what_ran_and_not_what_the_model_wanted,
    ),
    "an answer is not lost with its run": Guard(
        asking.take_answer,
        "draft.run.ending is not None",
        "False",
        middle.test_an_answer_while_its_run_ends_is_refused_and_not_lost,
    ),
    "an approval is used up by its answer": Guard(
        helping.close_request,
        "if h.help_id != request.help_id",
        "",
        asked.test_b22_of_two_approvals_the_first_counts_and_the_second_is_refused,
        "P4",
    ),
    "a declined call never runs": Guard(
        approving.take_decision,
        "if not decision.approve",
        "if False",
        asked.test_b10_a_declined_call_never_runs_and_the_model_is_told_why,
    ),
    "a denied call never runs": Guard(
        turn._problem,
        'call.ruling.then == "deny"',
        "False",
        asked.test_a_denied_call_never_runs_and_nobody_is_asked,
        "P3",
    ),
    "changed arguments are told": Guard(
        approvals.edited_note,
        "approval is None or approval.arguments is None",
        "True",
        asked.test_changed_arguments_are_run_recorded_and_told,
    ),
    "nothing is approved in a run that ends": Guard(
        approving.take_decision,
        "draft.run.ending is not None",
        "False",
        asked.test_an_approval_that_comes_while_its_run_ends_is_refused,
    ),
    "nobody is asked about the twin of a doubt": Guard(
        approving.ask_for_approvals,
        " and doubt_of(draft, call) is None",
        "",
        asked.test_nobody_is_asked_about_a_call_whose_twin_is_in_doubt,
    ),
    "an answer ends the wait for the expiry": Guard(
        helping.close_request,
        "request.expires_at_ms is not None and not over",
        "False",
        asked.test_an_answer_in_time_ends_the_wait,
    ),
    "an answer and an expiry are one outcome": Guard(
        helping.expired,
        "request is None or ",
        "",
        put.test_an_answer_and_an_expiry_in_one_moment_are_one_outcome,
    ),
    "an answer is one of the choices": Guard(
        questions.read, "if not choices", "if True", put.test_a_question_with_choices_takes_one_of_them, "P4"
    ),
    "a form's answer satisfies it": Guard(
        calls.answered,
        "read(event.text, request.choices, request.form)",
        "event.text",
        put.test_a_form_is_held_to_its_schema_with_every_place_that_is_wrong,
        "P4",
    ),
    "what cannot be told asks": Guard(
        rulebook._first,
        "except CannotTell as error:",
        "except CannotTell as error:\n            continue",
        lambda: rules.test_a_condition_that_cannot_be_told_asks_whatever_its_rule_would_do("allow"),
    ),
    "a call that no rule was asked about does not begin": Guard(
        turn._problem,
        "summary.unknown",
        "False",
        calls_of.test_a_call_that_its_worker_could_not_judge_does_not_begin_where_another_might,
    ),
    "nothing is allowed for an argument that is not declared": Guard(
        rulebook._Held.fits,
        'self.rule.then != "allow"',
        "True",
        rules.test_no_call_is_allowed_by_an_argument_that_its_tool_does_not_declare,
    ),
    "what a tool reads is held to the rules too": Guard(
        rulebook.Rulebook.ruling,
        "if read is None or alike(read, arguments)",
        "if True",
        rules.test_of_what_is_written_and_what_is_read_the_stricter_ruling_counts,
    ),
    "what would not be seen is escaped": Guard(
        shortening._shown_call,
        "visible(safe_text(",
        "str(safe_text(",
        seen.test_what_asks_about_a_call_hides_nothing_of_it_before_it_runs_and_after,
    ),
    "a name of an argument is quoted": Guard(
        shortening._shown_name,
        "if _PLAIN_NAME.fullmatch(name)",
        "if True",
        seen.test_a_name_of_an_argument_forges_nothing,
    ),
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_without_its_guard_the_protecting_test_fails(guard: Guard) -> None:
    needed_by_its_test(guard)


@pytest.mark.parametrize(
    "guard", [g for g in GUARDS.values() if g.number], ids=[n for n, g in GUARDS.items() if g.number]
)
def test_without_its_guard_a_random_life_breaks(guard: Guard) -> None:
    needed_by_random_lives(guard)
