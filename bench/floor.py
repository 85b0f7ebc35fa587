"""The floor: a workflow that does nothing but execute no-op activities one after the other."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy


@activity.defn
async def nothing(number: int) -> int:
    return number


@workflow.defn
class Floor:
    @workflow.run
    async def run(self, activities: int) -> None:
        for number in range(activities):
            await workflow.execute_activity(
                nothing,
                number,
                start_to_close_timeout=timedelta(seconds=60),
                heartbeat_timeout=timedelta(seconds=30),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
