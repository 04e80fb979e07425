#!/usr/bin/env python3
"""Uses all that server-everything offers through us, by the official Python SDK, and prints one line of JSON.

    everything.py URL | COMMAND ARG…        environment: TOKEN (bearer), MODE (auto, legacy or a version such as 2026-07-28)

Two connections: one of a client that can be asked, for sampling and elicitation, and one of a client that cannot, for all else.
A change of a resource is told in the process in which a call of the same connection made it.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client  # the SDK's own timeouts; it exports no public name for them
from mcp_types import CreateMessageResult, ElicitResult, PromptReference, ResourceUpdatedNotification, TextContent

URI = "demo://resource/dynamic/text/7"
MODE = os.environ.get("MODE", "auto")
PATIENCE_SECONDS = 120


async def answer(context, params) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="by the model"), model="none")


async def fill_in(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "by the person"})


def text_of(result) -> str:
    return "\n".join(block.text for block in result.content)


async def ask(server) -> dict:
    async with Client(server, mode=MODE, sampling_callback=answer, elicitation_callback=fill_in) as client:
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "q", "maxTokens": 10})
        elicited = await client.call_tool("trigger-elicitation-request", {})
        return {"sampling": text_of(sampled), "elicitation": text_of(elicited)}


async def use(server) -> dict:
    updated = asyncio.Event()

    async def hear(message) -> None:
        if isinstance(message, ResourceUpdatedNotification) and message.params.uri == URI:
            updated.set()

    async with Client(server, mode=MODE, message_handler=hear) as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        read = await client.read_resource(URI)
        prompts = await client.list_prompts()
        prompt = await client.get_prompt("args-prompt", {"city": "Oslo"})
        reference = PromptReference(type="ref/prompt", name="completable-prompt")
        completed = await client.complete(
            reference, {"name": "name", "value": "A"}, context_arguments={"department": "Engineering"}
        )
        if client.protocol_version == "2026-07-28":
            async with client.listen(resource_subscriptions=[URI]) as subscription:
                await client.call_tool("toggle-subscriber-updates", {})
                event = await asyncio.wait_for(anext(aiter(subscription)), PATIENCE_SECONDS)
                heard = event.uri
        else:
            await client.subscribe_resource(URI)
            await client.call_tool("toggle-subscriber-updates", {})
            await asyncio.wait_for(updated.wait(), PATIENCE_SECONDS)
            await client.unsubscribe_resource(URI)
            heard = URI
        return {
            "protocol": client.protocol_version,
            "resources": [str(resource.uri) for resource in resources.resources],
            "templates": [template.uri_template for template in templates.resource_templates],
            "read": read.contents[0].text,
            "prompts": [prompt.name for prompt in prompts.prompts],
            "prompt": prompt.messages[0].content.text,
            "completion": completed.completion.values,
            "updated": heard,
        }


async def main() -> None:
    target, *arguments = sys.argv[1:] or sys.exit(__doc__)
    said = {}
    for part in (use, ask):
        if target.startswith(("http://", "https://")):
            headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
            async with create_mcp_http_client(headers=headers) as http:
                said |= await part(streamable_http_client(target, http_client=http))
        else:
            said |= await part(StdioServerParameters(command=target, args=arguments, env=dict(os.environ)))
    print(json.dumps(said))


asyncio.run(main())
