"""The sandbox: what a workflow's instance imports, and that what it shares is only what the list says and why."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.converter import WithSerializationContext
from temporalio.worker import Worker

from perdure.temporal.connection import DATA_CONVERTER, Payloads
from perdure.temporal.sandbox import PASSED_THROUGH, workflow_runner
from tests.temporal.bench import Bench
from tests.temporal.peeking import Clocking, Peeking

KEPT_OUT = ("perdure.app", "perdure.store", "perdure.tools", "perdure.models", "sqlalchemy", "alembic", "pydantic_ai")

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_of_the_application_or_of_users_is_imported_inside(bench: Bench) -> None:
    async with Worker(
        bench.client,
        task_queue=bench.queue,
        workflows=[Peeking],
        workflow_runner=workflow_runner(),
        workflow_failure_exception_types=[Exception],
    ):
        inside = await bench.client.execute_workflow(Peeking.run, id=bench.queue, task_queue=bench.queue)
    assert "perdure.temporal.workflow" in inside
    assert [name for name in inside if name.startswith(KEPT_OUT)] == []
    assert [name for name in inside if name.startswith("tests.temporal.")] == ["tests.temporal.peeking"]


@pytest.mark.asyncio(loop_scope="session")
async def test_the_sandbox_watches(bench: Bench) -> None:
    async with Worker(
        bench.client,
        task_queue=bench.queue,
        workflows=[Clocking],
        workflow_runner=workflow_runner(),
        workflow_failure_exception_types=[Exception],
    ):
        with pytest.raises(WorkflowFailureError) as failure:
            await bench.client.execute_workflow(Clocking.run, id=bench.queue, task_queue=bench.queue)
    assert "time.time" in str(failure.value.cause)


def test_nothing_that_converts_payloads_asks_for_a_context() -> None:
    """What lets the runner spare the sandbox the question for every payload."""
    assert DATA_CONVERTER.payload_converter_class is Payloads
    parts = [*Payloads().converters.values(), DATA_CONVERTER.failure_converter]
    assert not [part for part in parts if isinstance(part, WithSerializationContext)]
    assert DATA_CONVERTER.payload_codec is None
    assert DATA_CONVERTER.external_storage is None


def test_each_shared_module_has_its_reason_and_none_is_a_users() -> None:
    assert all(reason.strip() for reason in PASSED_THROUGH.values())
    ours = [name for name in PASSED_THROUGH if name.startswith("perdure")]
    assert ours == ["perdure.core", "perdure.temporal.contracts", "perdure.temporal.failures"]


def test_what_is_shared_reads_no_clock_and_draws_nothing() -> None:
    """The sandbox does not look inside shared modules, so this does."""
    banned = {"time", "datetime", "random", "uuid", "secrets", "os", "asyncio", "socket", "threading", "subprocess"}
    files = [*(SOURCE / "perdure/core").rglob("*.py"), *(SOURCE / f"perdure/temporal/{n}.py" for n in SHARED)]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found = {(node.module or "").partition(".")[0]}
            else:
                continue
            assert not found & banned, f"{file.name} imports {found & banned}"


def test_a_workflow_waits_with_a_bound_in_one_way_only() -> None:
    """Others take their steps of the loop in an order that Python has changed (`perdure.temporal.waiting`)."""
    for name in ("workflow", "flights", "writer", "outbox", "waiting"):
        for node in ast.walk(ast.parse((SOURCE / f"perdure/temporal/{name}.py").read_text())):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            bounded = (
                called == "wait_condition" and len(getattr(node, "args", ())) + len(getattr(node, "keywords", ())) > 1
            )
            assert called not in {"wait_for", "timeout", "timeout_at"}, f"{name}.py calls {called}"
            assert not bounded, f"{name}.py bounds wait_condition; use `within`"


SHARED = ("contracts", "failures")


def test_importing_the_package_does_nothing() -> None:
    """The sandbox imports `perdure` anew for every instance, so that must load nothing."""
    script = "import sys; import perdure; print([n for n in sys.modules if n.startswith(('perdure.', 'pydantic'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
