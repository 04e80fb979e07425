#!/usr/bin/env python3
"""A client that is asked, on the official Python SDK: it answers forms, opens pages, samples and names its folders. Calls tools,
and prints one line of JSON: what each said, and what the client was asked.

    asked_client.py COMMAND ARG…    environment: MODE (legacy or 2026-07-28), TOOLS (names, with commas between), ROOTS (URIs
                                    likewise), REFUSE (any text: answers sampling with an error that says it), ARGUMENTS (of
                                    each call, as JSON), CONTENT (of the form that is filled in, likewise)
"""

import asyncio
import json
import os
import sys
import urllib.request

from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult, Root, TextContent

FORM = {"name": "ada", "username": "ada", "email": "a@b.org"}

asked = []
opening = []


async def fill_in(context, params) -> ElicitResult:
    asked.append({"message": params.message, "meta": params.meta, "form": getattr(params, "requested_schema", None)})
    if page := getattr(params, "url", None):
        asked[-1]["page"] = page
        opening.append(asyncio.create_task(asyncio.to_thread(urllib.request.urlopen, page)))
        return ElicitResult(action="accept")
    content = json.loads(os.environ.get("CONTENT", json.dumps(FORM)))
    return ElicitResult(action="accept", content=content)


async def sample(context, params):
    asked.append({"sampling": params.messages[0].content.text, "meta": params.meta})
    if "REFUSE" in os.environ:
        return ErrorData(code=-1, message=os.environ["REFUSE"])
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")


async def name_roots(context) -> ListRootsResult:
    asked.append({"roots": True})
    return ListRootsResult(roots=[Root(uri=uri) for uri in os.environ["ROOTS"].split(",")])


async def main() -> None:
    command, *arguments = sys.argv[1:] or sys.exit(__doc__)
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    callbacks = dict(elicitation_callback=fill_in, sampling_callback=sample, list_roots_callback=name_roots)
    said = {}
    async with Client(server, mode=os.environ["MODE"], **callbacks) as client:
        for tool in os.environ["TOOLS"].split(","):
            try:
                result = await client.call_tool(tool, json.loads(os.environ.get("ARGUMENTS", "{}")))
                said[tool] = result.content[0].text
            except Exception as error:  # told, so that the test sees which one
                said[tool] = f"{type(error).__name__}: {error}"
    print(json.dumps({"said": said, "asked": asked}, default=lambda one: one.model_dump(by_alias=True)))


asyncio.run(main())
