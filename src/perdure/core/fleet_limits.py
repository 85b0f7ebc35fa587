"""Every bound of worker processes, their supervisor and the embedded Temporal, each with its reason (P7).

Units are in the names.
"""

from perdure.core.limits import KIB

WORKER_PROCESSES_MAX = 64
"""Worker processes of one supervisor: each takes some 60 MB and its share of Temporal's polls."""

QUARANTINE_PROCESSES = 2
"""R12: one would let a suspect that works for minutes hold up every other one; they are idle nearly always."""

DEATH_REQUESTS_AT_ONCE_MAX = 16
"""Requests at once while a death is reported: a sweep over hundreds of tasks must not crowd out the living."""

DEATH_REQUEST_TIMEOUT_S = 5.0
"""One request of a report; a Temporal that takes longer is down, and the heartbeat timeout remains."""

DEATH_SWEEP_AFTER_S = 0.5
"""Between sweeps: the list of running tasks lags, and the server may still hand work to a connection that is gone."""

DEATH_LAST_WORD_S = 3.0
"""How long a supervisor that ends may take to report its last workers; the heartbeat timeout finds what is left."""

DEATH_HISTORY_EVENTS_MAX = 20
"""Events read backwards to see which worker took a workflow's latest workflow task; it is among the last few."""

WORKER_GRACE_S = 10.0
"""How long after its drain a worker may take to end before its process group is killed."""

WORKER_RESTARTS_MAX = 10
"""Starts in a row that failed, or died idle within WORKER_STEADY_S, after which a supervisor gives up; not while
another worker is ready."""

WORKER_STEADY_S = 5.0
"""A worker that lived this long, or had work in hand, was not killed by its own start."""

WORKER_RESTART_DELAY_MAX_S = 10.0
"""The first restart is at once, the next ones wait 0.5 s, 1 s, 2 s and so on up to this."""

WORKER_LOG_BYTES_MAX = 8 * KIB * KIB
"""A longer log of workers is put aside as `worker.log.1` at the next start: two of them at most."""

TEMPORAL_RESTARTS_MAX = 10
"""Starts in a row that failed, or died within TEMPORAL_STEADY_S, after which its owner gives the server up."""

TEMPORAL_STEADY_S = 1.0
"""A server that lived this long came up: whatever ended it was not its own start."""

TEMPORAL_RESTART_DELAY_MAX_S = 5.0
"""The first restart is at once, the next ones wait 0.1 s, 0.2 s and so on up to this: about 20 s until the end."""
