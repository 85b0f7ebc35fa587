"""Tools: Python functions that models can call, and the executor that runs calls through the effect ledger."""

from perdure.tools.executor import LedgerExecutor
from perdure.tools.function import FunctionTool, tool
from perdure.tools.intrinsic import ASK_PARTICIPANT_SCHEMA, manner_of, question_of

__all__ = ["ASK_PARTICIPANT_SCHEMA", "FunctionTool", "LedgerExecutor", "manner_of", "question_of", "tool"]
