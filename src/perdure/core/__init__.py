"""The pure core: models, state machine, policies, limits, errors and ports.

Nothing here performs I/O, reads a clock, draws a random number, looks at the environment, or knows that Temporal
or asyncio exist. Time, ids and jitter come in as arguments. That is what makes the same decisions come out of a
replay (P11), and what lets property tests drive years of a task's life in milliseconds.
"""
