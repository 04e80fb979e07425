#!/usr/bin/env python3
"""A server behind the old HTTP+SSE transport alone, on the official Python SDK.

Serves http://127.0.0.1:PORT/sse, a free port, and prints `listening PORT`. It ends with its standard input.
"""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("old")


@server.tool()
async def count(to: int, context: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await context.report_progress(number, to)
    return f"counted to {to}"


async def main() -> None:
    """The socket listens before its port is printed, so whoever reads the line can connect."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening", listener.getsockname()[1], flush=True)
    config = uvicorn.Config(server.sse_app(), log_level="error", timeout_graceful_shutdown=0)
    serving = asyncio.ensure_future(uvicorn.Server(config).serve(sockets=[listener]))
    await asyncio.to_thread(sys.stdin.read)
    serving.cancel()


asyncio.run(main())
