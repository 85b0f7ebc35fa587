"""The outage's agent, for a command from which the rule of A20 can be taken out: `tests.races.booting:agent`.

Without it the deaths of workers that went down with their supervisor are told as crashes, though nobody saw them crash.
"""

import os

from perdure.app.supervisor import Supervisor
from tests.outage.acting import agent
from tests.races.without import Rule, without

__all__ = ["agent"]

GUARD = "PERDURE_TEST_WITHOUT_LOSS"

if os.environ.get(GUARD):
    told = Rule(Supervisor._tell_of_earlier, '"worker_lost"', '"worker_died"')
    setattr(Supervisor, "_tell_of_earlier", without("lost is no crash", told))  # noqa: B010 - a method of a class
