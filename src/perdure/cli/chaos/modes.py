"""The three ways in which a death can be found, as they stand in what a task records of its agent.

`supervised` is Perdure's own: a death is reported at once. The other two are Temporal's plain ways, for comparison
over the same kills: nobody reports, and only a timeout of the attempt finds the death. What they change is recorded
with the task, as every timeout is; the agent's own code is the same in all three.
"""

from typing import Final, Literal

from perdure.core.agent import AgentSpec, RetryPolicy

Mode = Literal["supervised", "heartbeat", "timeout"]
MODES: Final[tuple[Mode, ...]] = ("supervised", "heartbeat", "timeout")

START_TO_CLOSE_S: Final = 10.0
"""`timeout`: what the published experiment gave a step of three seconds."""

HEARTBEAT_S: Final = 2.0
"""`heartbeat`: what the published experiment had; shorter ones cost a request a second and more."""

NEVER_S: Final = 86_400.0
"""A heartbeat timeout that finds nothing."""


def recorded_spec(spec: AgentSpec, mode: Mode, kills: int) -> AgentSpec:
    """Return the agent's shape for a trial of that many kills.

    The limit of crashes in a row (R12) is set above the kills: they are this command's doing, not the task's. Under
    `timeout` a death looks like a slow attempt, which counts as one of the tool's own; their number is raised too.
    """

    def times(timeout_s: float, heartbeat_timeout_s: float, retry: RetryPolicy) -> dict[str, object]:
        match mode:
            case "supervised":
                return {}
            case "heartbeat":
                return {"heartbeat_timeout_s": min(HEARTBEAT_S, heartbeat_timeout_s)}
            case "timeout":
                more = retry.model_copy(update={"attempts_max": retry.attempts_max + kills})
                return {
                    "timeout_s": min(START_TO_CLOSE_S, timeout_s),
                    "heartbeat_timeout_s": NEVER_S,
                    "retry": more,
                }

    tools = tuple(
        tool.model_copy(update=times(tool.timeout_s, tool.heartbeat_timeout_s, tool.retry)) for tool in spec.tools
    )
    model, *fallbacks = (
        model.model_copy(update=times(model.timeout_s, model.heartbeat_timeout_s, model.retry)) for model in spec.models
    )
    crashes_max = max(spec.crashes_max, kills + 1)
    return spec.model_copy(
        update={"tools": tools, "model": model, "fallbacks": tuple(fallbacks), "crashes_max": crashes_max}
    )
