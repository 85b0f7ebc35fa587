"""A2A's operations, all eleven, for every binding: the SDK's `RequestHandler` over the app.

Nothing of the SDK's own serving is used: no AgentExecutor, no event queue, no task store. An operation reads the store
or asks the task's workflow, and holds nothing when it has answered; the loop that works on a task never runs in a
request.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    ExtensionSupportRequiredError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a.utils.input_mode_validator import validate_input_modes

from perdure.a2a import extension
from perdure.a2a.caller import caller_of, told_of
from perdure.a2a.canceling import canceled
from perdure.a2a.direct import as_message, wants_message
from perdure.a2a.errors import RETRY_AFTER_S, ServiceUnavailableError, invalid, translating
from perdure.a2a.listing import listed, unknown_state
from perdure.a2a.push_configs import PushConfigs
from perdure.a2a.sending import Accepted, Sending
from perdure.a2a.sharing import shared_with
from perdure.a2a.streams import Streams
from perdure.a2a.tasks import TaskReader
from perdure.a2a.translate import Update
from perdure.app.app import App
from perdure.core.errors import StoreUnavailable


@contextlib.contextmanager
def _telling(context: ServerCallContext) -> Iterator[None]:
    """Let the binding say when to come back where the service did not answer."""
    try:
        yield
    except ServiceUnavailableError:
        told_of(context).retry_after_s = RETRY_AFTER_S
        raise


def _history_length(given: SendMessageConfiguration | GetTaskRequest | ListTasksRequest) -> int | None:
    """Return how many messages are wanted, None for all (A2A 3.2.4)."""
    if not given.HasField("history_length"):
        return None
    if given.history_length < 0:
        raise invalid("historyLength", f"is {given.history_length}; give 0 or more, or leave it out for all")
    return given.history_length


Answer = TypeVar("Answer", Task, Message, Task | Message)


def _marked(answer: Answer, unkept: str) -> Answer:
    """Say in the answer what of the request was not kept, if something was not."""
    if unkept:
        extension.add(answer.metadata, {"pushNotKept": unkept})
    return answer


class FrontDoor(RequestHandler):
    """Serves one agent's tasks under its card; `pushes` None: it does not push."""

    def __init__(
        self,
        app: App,
        card: AgentCard,
        pushes: PushConfigs | None = None,
        extended: AgentCard | None = None,
    ) -> None:
        self._app = app
        self._card = card
        self._extended = extended
        self._pushes = pushes
        self._reader = TaskReader(app)
        self._sending = Sending(app, self._reader)
        self._streams = Streams(app, self._reader)

    # --- sending ------------------------------------------------------------------------------------------------

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Take the message in; return at once, or when the task rests (A2A 3.1.1, 3.2.2)."""
        with _telling(context), translating():
            wanted = _history_length(params.configuration)
            await self._refuse(params, context)
            direct = wants_message(self._app.agent, params)  # its author's code: before anything is taken in
            accepted, unkept = await self._accept(params, context)
            try:
                if params.configuration.return_immediately:
                    view = await self._reader.view(accepted.found)
                else:
                    view = await self._streams.until_rest(accepted.found, accepted.after)
                task = await self._reader.task(view, wanted)
            except StoreUnavailable:  # an error would have the client send again what was taken in (P1)
                return _marked(self._reader.accepted(accepted.found, accepted.message), unkept)
            return _marked((as_message(task) if direct else None) or task, unkept)

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Message | Update, None]:
        """Take the message in and follow its task, from the event before the message (A2A 3.1.2)."""
        with _telling(context), translating():
            self._refuse_without_streaming()
            wanted = _history_length(params.configuration)
            await self._refuse(params, context)
            direct = wants_message(self._app.agent, params)  # its author's code: before anything is taken in
            accepted, unkept = await self._accept(params, context)
            said = False
            try:
                async with aclosing(self._said_to(accepted, context, wanted, direct=direct)) as updates:
                    async for update in updates:
                        said = True
                        yield update if isinstance(update, Update) else _marked(update, unkept)
            except StoreUnavailable:
                if not said:  # the client learns which task to come back to, and that it need not send again (P1)
                    yield _marked(self._reader.accepted(accepted.found, accepted.message), unkept)
                raise

    async def _said_to(
        self, accepted: Accepted, context: ServerCallContext, wanted: int | None, *, direct: bool
    ) -> AsyncGenerator[Task | Message | Update, None]:
        if direct:
            answered = await self._streams.until_rest(accepted.found, accepted.after)
            message = as_message(await self._reader.task(answered, 0))
            if message is not None:
                yield message
                return
        view = await self._reader.view(accepted.found, accepted.after)
        async with aclosing(self._streams.follow(view, told_of(context), wanted)) as updates:
            async for update in updates:
                yield update

    async def _refuse(self, params: SendMessageRequest, context: ServerCallContext) -> None:
        validate_input_modes(params.message, self._card)
        for each in self._card.capabilities.extensions:
            if each.required and each.uri not in context.requested_extensions:
                raise ExtensionSupportRequiredError(
                    message=f"A2A-Extensions: must name {each.uri}, which this agent requires",
                    data={"extension": each.uri},
                )
        shared_with(params, caller_of(context))
        if params.configuration.HasField("task_push_notification_config"):
            await self._pushing.check_of(params, caller_of(context))

    async def _accept(self, params: SendMessageRequest, context: ServerCallContext) -> tuple[Accepted, str]:
        """Take the message in; return with it why its push configuration is not kept, if it is not."""
        accepted = await self._sending.accept(params, caller_of(context))
        if params.configuration.HasField("task_push_notification_config"):
            return accepted, await self._pushing.keep_of(params, accepted)
        return accepted, ""

    # --- reading ------------------------------------------------------------------------------------------------

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Return the task as it is now (A2A 3.1.3)."""
        with _telling(context), translating():
            wanted = _history_length(params)
            found = await self._reader.see(params.id, caller_of(context))
            return await self._reader.task(await self._reader.view(found), wanted)

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return a page of the caller's tasks (A2A 3.1.4)."""
        with _telling(context), translating():
            unknown = told_of(context).unknown_state
            if unknown is not None:
                raise unknown_state(unknown)
            return await listed(self._app, self._reader, params, caller_of(context), _history_length(params))

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Update, None]:
        """Follow the task from now on, or from after the event that the client names (A2A 3.1.6).

        A task that has ended has nothing more to say, unless its client lacks some of it.
        """
        with _telling(context), translating():
            self._refuse_without_streaming()
            caller = caller_of(context)
            found = await self._reader.see(params.id, caller)
            # A number that the task has not reached yet is taken for the last one that it has.
            view = await self._reader.view(found, caller.after)
            if view.terminal:
                raise UnsupportedOperationError(
                    message=f"task {params.id!r} is {view.state}; GetTask returns what became of it",
                    data={"taskId": params.id, "state": view.state},
                )
            async with aclosing(self._streams.follow(view, told_of(context))) as updates:
                async for update in updates:
                    yield update

    def _refuse_without_streaming(self) -> None:
        if not self._card.capabilities.streaming:
            raise UnsupportedOperationError("This agent does not stream; use SendMessage and GetTask")

    # --- canceling ----------------------------------------------------------------------------------------------

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """Cancel the task for good (A2A 3.1.5)."""
        with _telling(context), translating():
            found = await self._reader.find(params.id, caller_of(context))
            return await self._reader.task(await canceled(self._app, self._streams, found))

    # --- push notifications -------------------------------------------------------------------------------------

    @property
    def _pushing(self) -> PushConfigs:
        if self._pushes is None:
            raise PushNotificationNotSupportedError("This agent does not push, as its card says; follow the task")
        return self._pushes

    @validate_request_params
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Push a task's events to a URL from now on (A2A 3.1.7)."""
        with _telling(context), translating():
            return await self._pushing.create(params, caller_of(context))

    @validate_request_params
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return one of a task's push configurations (A2A 3.1.8)."""
        with _telling(context), translating():
            return await self._pushing.get(params, caller_of(context))

    @validate_request_params
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return a task's push configurations (A2A 3.1.9)."""
        with _telling(context), translating():
            return await self._pushing.listed(params, caller_of(context))

    @validate_request_params
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Push nothing more there (A2A 3.1.10)."""
        with _telling(context), translating():
            await self._pushing.delete(params, caller_of(context))

    # --- the card -----------------------------------------------------------------------------------------------

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Return what those who have come in are told; refused where nobody is asked who they are (A2A 3.1.11)."""
        if self._extended is None:
            raise UnsupportedOperationError("This agent has no extended card; the public one says everything")
        return self._extended
