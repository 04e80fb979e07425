#!/usr/bin/env python3
"""The fixture upstream of the conformance suite, on the official Python SDK (so that a bug of our own SDK cannot hide on both sides).

It offers the *tools* part of the suite's fixture (no resources and no prompts, and it asks the client nothing, save where
`server-stateless` wants it) and a tool `echo` for latency tests, to both protocol generations: `initialize` up to 2025-11-25
and the stateless 2026-07-28.

    fixture_server.py           serves stdio
    fixture_server.py --http    serves http://127.0.0.1:PORT/mcp, a free port, and prints `listening PORT`
"""

import asyncio
import base64
import io
import socket
import struct
import sys
import warnings
import wave
import zlib

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

warnings.simplefilter("ignore", MCPDeprecationWarning)  # logging is deprecated at 2026-07-28 and still a duty before it

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STEP_SECONDS = 0.05  # the suite asks for about 50 ms between messages

# Every JSON Schema keyword that the scenario `json-schema-2020-12` looks for; must reach the client as it stands here.
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

bus = InMemorySubscriptionBus()  # carries list changes to the `subscriptions/listen` streams of 2026-07-28
log_levels: dict[str | None, str] = {}  # session id (None on stdio) -> what `logging/setLevel` asked for
dynamic_tool_listed = False  # toggled by test_trigger_tool_change, so that the list really differs


# Contents


def png_pixel() -> str:
    """One red pixel as a base64 PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def wav_silence() -> str:
    """Ten silent samples as a base64 WAV."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(20))
    return base64.b64encode(file.getvalue()).decode()


def text(value: str) -> types.TextContent:
    return types.TextContent(type="text", text=value)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=png_pixel(), mime_type="image/png")


def resource(uri: str, mime_type: str, value: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    return types.EmbeddedResource(type="resource", resource=contents)


def done(*content, **members) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), **members)


# Tools: each is `async (ctx, arguments) -> result`, its docstring the description that clients see


async def test_simple_text(ctx, arguments):
    """Returns one text."""
    return done(text("This is a simple text response for testing."))


async def test_image_content(ctx, arguments):
    """Returns one image."""
    return done(image())


async def test_audio_content(ctx, arguments):
    """Returns one sound."""
    return done(types.AudioContent(type="audio", data=wav_silence(), mime_type="audio/wav"))


async def test_embedded_resource(ctx, arguments):
    """Returns one embedded resource."""
    return done(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))


async def test_multiple_content_types(ctx, arguments):
    """Returns a text, an image and a resource."""
    return done(
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    )


async def test_error_handling(ctx, arguments):
    """Always answers with an error."""
    return done(text("This tool intentionally returns an error for testing"), is_error=True)


async def test_tool_with_logging(ctx, arguments):
    """Sends three log messages."""
    await log(ctx, "Tool execution started")
    await asyncio.sleep(STEP_SECONDS)
    await log(ctx, "Tool processing data")
    await asyncio.sleep(STEP_SECONDS)
    await log(ctx, "Tool execution completed")
    return done(text("Tool with logging executed"))


async def test_logging_tool(ctx, arguments):
    """Logs once; at 2026-07-28 only a request that named a log level may see it."""
    await log(ctx, "A message for those who asked for it")
    return done(text("Logged"))


async def test_tool_with_progress(ctx, arguments):
    """Reports progress 0, 50 and 100 of 100."""
    for progress in (0, 50, 100):
        if progress:
            await asyncio.sleep(STEP_SECONDS)
        await ctx.session.report_progress(progress, 100)
    return done(text("Tool with progress executed"))


async def test_trigger_tool_change(ctx, arguments):
    """Adds or removes test_dynamic_tool and tells whoever listens."""
    global dynamic_tool_listed
    dynamic_tool_listed = not dynamic_tool_listed
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()  # sessions of older revisions; the SDK drops it at 2026-07-28
    return done(text("The list of tools has changed"))


async def test_missing_capability(ctx, arguments):
    """Works only for clients that declare the sampling capability."""
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs the client capability 'sampling'",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return done(text("The client can sample"))


async def test_streaming_elicitation(ctx, arguments):
    """At 2026-07-28 asks once, and only as `input_required`: its stream must never hold a request of the server."""
    declared = ctx.session.client_capabilities
    may_ask = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and declared is not None and declared.elicitation is not None
    if not may_ask or ctx.params.get("inputResponses"):
        return done(text("Nothing to ask"))
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = types.ElicitRequestFormParams(message="What is your name?", requested_schema=form)
    return types.InputRequiredResult(input_requests={"user_name": types.ElicitRequest(params=question)})


async def test_dynamic_tool(ctx, arguments):
    """Comes and goes."""
    return done(text("Still here"))


async def json_schema_2020_12_tool(ctx, arguments):
    """Has a schema with every keyword that a careless gateway drops."""
    return done(text(f"Called with {sorted(arguments)}"))


async def echo(ctx, arguments):
    """Returns its message."""
    message = arguments.get("message")
    if not isinstance(message, str):
        return done(text("echo: `message` must be a string"), is_error=True)
    return done(text(message))


TOOLS = {
    tool.__name__: tool
    for tool in (
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_logging,
        test_logging_tool,
        test_tool_with_progress,
        test_trigger_tool_change,
        test_missing_capability,
        test_streaming_elicitation,
        test_dynamic_tool,
        json_schema_2020_12_tool,
        echo,
    )
}
SCHEMAS = {
    "json_schema_2020_12_tool": RICH_SCHEMA,
    "echo": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}


# Protocol


def session_of(ctx) -> str | None:
    return ctx.request.headers.get("mcp-session-id") if ctx.request is not None else None


async def log(ctx, message: str) -> None:
    """Sends an info message on the stream of this call; the SDK applies the rule of 2026-07-28, we that of `logging/setLevel`."""
    wanted = log_levels.get(session_of(ctx), "debug")
    if LEVELS.index("info") >= LEVELS.index(wanted):
        await ctx.session.send_log_message("info", message, logger="fixture", related_request_id=ctx.request_id)


async def set_logging_level(ctx, params) -> types.EmptyResult:
    log_levels[session_of(ctx)] = params.level
    return types.EmptyResult()


async def list_tools(ctx, params) -> types.ListToolsResult:
    listed = [name for name in TOOLS if dynamic_tool_listed or name != "test_dynamic_tool"]
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=TOOLS[name].__doc__,
                input_schema=SCHEMAS.get(name, {"type": "object", "properties": {}}),
            )
            for name in listed
        ]
    )


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await tool(ctx, params.arguments or {})


server = Server(
    "toolstead-fixture",
    version="1.0.0",
    cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="public")},
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_set_logging_level=set_logging_level,
    on_subscriptions_listen=ListenHandler(bus),
)


async def serve_stdio() -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options(NotificationOptions(tools_changed=True)))


async def serve_http() -> None:
    """The socket listens before its port is printed, so whoever reads the line can connect."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening", listener.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)  # an open event stream must not hold us back
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--http"]):
        sys.exit(__doc__)
    asyncio.run(serve_http() if sys.argv[1:] else serve_stdio())
