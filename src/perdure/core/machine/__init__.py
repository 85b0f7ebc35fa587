"""The task's state machine: `step(state, event) -> (state, commands)`.

- `table`: the transition table and `step`;
- `admission`: messages, stop and cancel from outside;
- `run`: the loop from positions to the next thing to do;
- `turn` and `calls`: the two halves of a turn; `attempts` and `closing`: what both share;
- `helping`, `approving` and `doubts`: what a person is asked meanwhile;
- `draft`: one transition under construction.
"""

from perdure.core.machine.admission import refuse_admission, resend
from perdure.core.machine.helping import meant_by, not_open, refuse_late_word
from perdure.core.machine.table import new_task, outstanding, step

__all__ = [
    "meant_by",
    "new_task",
    "not_open",
    "outstanding",
    "refuse_admission",
    "refuse_late_word",
    "resend",
    "step",
]
