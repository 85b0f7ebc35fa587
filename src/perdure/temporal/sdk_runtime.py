"""The SDK's native runtime, one per process: without metrics, and without a log of its own.

Its log would go to standard output, between a command's JSON lines. What matters of it comes back as errors.
"""

import functools
import os

from temporalio.runtime import Runtime, TelemetryConfig


def sdk_runtime() -> Runtime:
    """Return this process's runtime. A forked child gets one of its own: its parent's threads are not there."""
    return _runtime_of(os.getpid())


@functools.cache
def _runtime_of(_pid: int) -> Runtime:
    return Runtime(telemetry=TelemetryConfig(logging=None, metrics=None), disable_environment_info=True)
