"""One tree of errors.

    PerdureError
    ├── InvalidInput            what was given is wrong; nothing was changed            (caller, no retry)
    │   ├── ConfigurationError  settings, agents, tools: names the key and the fix      (caller, no retry)
    │   ├── MessageConflict     the same message id with other content (P1)             (caller, no retry)
    │   ├── MessageNotWaiting   the message was acted on, taken back, or never came     (caller, no retry)
    │   ├── TaskNotFound        no such task in this store                              (caller, no retry)
    │   └── TaskClosed          the task is terminal (P5)                               (caller, no retry)
    ├── Unavailable             nothing was decided; the same request may succeed later (us, retry)
    │   ├── StoreUnavailable    the store did not take a write or a read                (us, retry)
    │   └── EmbeddedTemporalError  the embedded Temporal did not start                  (us, see its text)
    ├── Diverged                two records of the same thing differ                    (us, a person must look)
    │   ├── StoreBehind         the store lacks rows that were confirmed
    │   ├── StoreAhead          the store holds another row under the same number
    │   └── KeyReused           an idempotency key with another tool or arguments
    ├── RunFailed               a run ended without an answer; its code is the run's reason     (see its text)
    ├── Fenced                  refused before it began: a stop or a newer attempt stands (nobody, no retry)
    ├── IllegalEvent            the state machine refuses an event in this state        (us, a defect)
    ├── InvariantBroken         a numbered promise or rule does not hold                (us, a defect)
    ├── ModelError              a model call failed: transient or not, with Retry-After (provider)
    ├── ToolError               a tool says: it did not happen, and why                 (tool, no retry)
    ├── BegunError              a begun tool call ended without a result: the effect class decides   (tool)
    └── OutcomeUnknown          it cannot be known whether an effect happened (P4)      (nobody; never repeat)

Every class has a stable `code`. Errors are classified once, at the edge of an activity (`Failure` in `failure.py`).
"""


class PerdureError(Exception):
    """Base of all errors of this package."""

    code = "error"


class InvalidInput(PerdureError):
    """Something given was wrong; the text names the field and the fix, and nothing was changed."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class ConfigurationError(InvalidInput):
    """A setting, an agent or a tool is declared in a way that cannot work."""

    code = "configuration"


class MessageConflict(InvalidInput):
    """A message id that was used before came again with other content (P1)."""

    code = "message_conflict"

    def __init__(self, message_id: str) -> None:
        super().__init__("message_id", f"{message_id!r} was used before with other content; use a new id")


class MessageNotWaiting(InvalidInput):
    """A message that was to be moved or taken back does not wait: it was acted on, taken back, or is unknown here."""

    code = "message_not_waiting"

    def __init__(self, problem: str) -> None:
        super().__init__("message_id", problem)


class TaskNotFound(InvalidInput):
    """No task of this id exists here."""

    code = "task_not_found"

    def __init__(self, task_id: str) -> None:
        super().__init__("task_id", f"there is no task {task_id!r}; `perdure tasks` lists those that exist")


class TaskClosed(InvalidInput):
    """The task has reached a terminal state (P5), or is being canceled; a new task can refer to it."""

    code = "task_closed"

    def __init__(self, task_id: str, state: str) -> None:
        super().__init__("task_id", f"task {task_id!r} is {state}; start a new task")
        self.state = state


class Unavailable(PerdureError):
    """Nothing was decided; the same request may succeed later."""

    code = "unavailable"


class StoreUnavailable(Unavailable):
    """The store did not take a read or a write."""

    code = "store_unavailable"


class EmbeddedTemporalError(Unavailable):
    """The embedded Temporal could not be started or joined; never answered by using another Temporal."""

    code = "embedded_temporal"


class Diverged(PerdureError):
    """Two durable records that must agree do not; a person has to look, and nothing is called meanwhile."""

    code = "diverged"


class StoreBehind(Diverged):
    """The store lacks rows whose write it had confirmed: it was restored from an older moment."""

    code = "store_behind"


class StoreAhead(Diverged):
    """The store holds another row under the same number or key: Temporal was restored from an older moment."""

    code = "store_ahead"


class KeyReused(Diverged):
    """An idempotency key came with another tool or other arguments than it was begun with."""

    code = "key_reused"


class RunFailed(PerdureError):
    """A run ended without an answer: failed, stopped or canceled. `reason` is the run's reason code (R10)."""

    code = "run_failed"

    def __init__(self, task_id: str, state: str, reason: str, message: str) -> None:
        super().__init__(f"task {task_id} is {state} without an answer ({reason}){': ' + message if message else ''}")
        self.state = state
        self.reason = reason


class Fenced(PerdureError):
    """Refused in the transaction that would have begun it: a stop (P9) or a newer attempt (P3) stands."""

    code = "fenced"


class IllegalEvent(PerdureError):
    """The state machine does not take this event in this state; the state is unchanged."""

    code = "illegal_event"


class InvariantBroken(PerdureError):
    """A promise or rule, named by its number, does not hold: a defect of this package."""

    code = "invariant"

    def __init__(self, number: str, what: str) -> None:
        super().__init__(f"{number}: {what}")
        self.number = number


class ModelError(PerdureError):
    """A model call failed.

    `retryable` says whether the same request may succeed later; `retry_after_s` is the provider's own wish. Of one that
    is not retryable, `elsewhere` says whether another model may do it: False where the request itself was refused.
    """

    code = "model"

    def __init__(
        self, message: str, *, retryable: bool, retry_after_s: float | None = None, elsewhere: bool = True
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.elsewhere = elsewhere


class ToolError(PerdureError):
    """Raised by a tool: the effect did not happen, and this text is what the model is told. Never retried."""

    code = "tool"


class BegunError(PerdureError):
    """A tool call was begun and raised something else than `ToolError`: for a `once` tool it is in doubt.

    A tool raises it to say how long the service behind it asks to be left alone: the next attempt, where there is one,
    waits so long.
    """

    code = "begun"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OutcomeUnknown(PerdureError):
    """It cannot be known whether the effect under `key` happened (P4); it is neither repeated nor dropped.

    A tool raises it to say so of its own call: `raise OutcomeUnknown(call.idempotency_key, "the bank timed out")`. Its
    check is then asked, as after a crash. It is the cause of the `RunFailed` of a run that ended because of it.
    """

    code = "outcome_unknown"

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the outcome of {key} is unknown: {reason}")
        self.key = key
        self.reason = reason
