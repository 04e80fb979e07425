#!/usr/bin/env python3
"""The fixture upstream of the conformance suite, on the official Python SDK (so that a bug of our own SDK cannot hide on both sides).

It offers everything that the suite calls, reads and gets (fixture/tools.py, fixture/context.py) and a tool `echo` for latency
tests, to both protocol generations: `initialize` up to 2025-11-25 and the stateless 2026-07-28.
Tools that ask do so by requests to the client before 2026-07-28 and in rounds since.

    fixture_server.py           serves stdio
    fixture_server.py --http    serves http://127.0.0.1:PORT/mcp, a free port, and prints `listening PORT`
"""

import asyncio
import itertools
import socket
import sys
import warnings

import mcp_types as types
import uvicorn
from fixture import context, tools
from fixture.call import Asking, Call, bus, is_modern, log_levels, session_of, sessions
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

warnings.simplefilter("ignore", MCPDeprecationWarning)  # logging is deprecated at 2026-07-28 and still a duty before it

RETRY_MILLISECONDS = 100  # when a client may come back for the rest of a stream that ended in mid-call
CACHED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


class Events(EventStore):
    """The events of each stream, so that a client whose stream ended gets the rest."""

    def __init__(self):
        self.ids = itertools.count(1)
        self.events: list[tuple[str, str, object]] = []

    async def store_event(self, stream_id, message):
        event_id = str(next(self.ids))
        self.events.append((stream_id, event_id, message))
        return event_id

    async def replay_events_after(self, last_event_id, send_callback):
        stream = next((stream for stream, event_id, _ in self.events if event_id == last_event_id), None)
        for candidate, event_id, message in list(self.events):
            if candidate == stream and int(event_id) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream


async def set_logging_level(ctx, params) -> types.EmptyResult:
    log_levels[session_of(ctx)] = params.level
    return types.EmptyResult()


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=tools.listed())


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    tool = tools.TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    try:
        return await tool(Call(ctx, params))
    except Asking as asking:
        return asking.result


async def list_resources(ctx, params) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=context.resources())


async def list_templates(ctx, params) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=context.templates())


async def read_resource(ctx, params) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[context.read(ctx, str(params.uri))])


async def subscribe(ctx, params) -> types.EmptyResult:
    context.read(ctx, str(params.uri))  # nobody is told of what is not there
    if str(params.uri) == context.WATCHED:
        context.watchers[session_of(ctx)] = sessions[session_of(ctx)]
    return types.EmptyResult()


async def unsubscribe(ctx, params) -> types.EmptyResult:
    if str(params.uri) == context.WATCHED:
        context.watchers.pop(session_of(ctx), None)
    return types.EmptyResult()


async def list_prompts(ctx, params) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=context.prompts())


async def get_prompt(ctx, params) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name not in context.PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    prompt, arguments = context.PROMPTS[params.name]
    missing = [argument for argument in arguments if argument not in (params.arguments or {})]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"Missing arguments: {', '.join(missing)}")
    try:
        return types.GetPromptResult(messages=await prompt(Call(ctx, params)))
    except Asking as asking:
        return asking.result


async def complete(ctx, params) -> types.CompleteResult:
    return types.CompleteResult(completion=context.complete(params))


async def remember_session(ctx, call_next):
    """A session of an older revision hears of changes from its first request on."""
    if not is_modern(ctx) and ctx.request_id is not None:
        sessions.setdefault(session_of(ctx), ctx.session)
    return await call_next(ctx)


class FixtureServer(Server):
    def create_initialization_options(self, notification_options=None, *args, **members):
        """The HTTP transport would declare that no list ever changes."""
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(changes, *args, **members)


server = FixtureServer(
    "toolstead-fixture",
    version="1.0.0",
    instructions="Call what the conformance suite calls.",
    cache_hints={method: CacheHint(ttl_ms=0, scope="public") for method in CACHED},
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_logging_level,
    on_subscriptions_listen=ListenHandler(bus),
)
server.middleware.append(remember_session)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))


async def serve_stdio() -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


async def serve_http() -> None:
    """The socket listens before its port is printed, so whoever reads the line can connect."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening", listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(event_store=Events(), retry_interval=RETRY_MILLISECONDS)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)  # an open event stream must not hold us back
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--http"]):
        sys.exit(__doc__)
    asyncio.run(serve_http() if sys.argv[1:] else serve_stdio())
