"""The official Python SDK at an endpoint: lists, calls, prompts, reads and completes, and prints what
came back as one JSON object.

usage: python_endpoint.py URL PREFIX MODE
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.types import PromptReference


async def main(url: str, prefix: str, mode: str) -> None:
    async with Client(url, mode=mode) as client:
        tools = await client.list_tools()
        called = await client.call_tool(prefix + "test_simple_text", {})
        prompt = prefix + "test_prompt_with_arguments"
        prompted = await client.get_prompt(prompt, {"arg1": "one", "arg2": "two"})
        read = await client.read_resource("test://static-text")
        ref = PromptReference(type="ref/prompt", name=prompt)
        completed = await client.complete(ref, {"name": "arg1", "value": "te"})
        report = {
            "protocol": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "call": called.content[0].text,
            "prompt": prompted.messages[0].content.text,
            "resource": read.contents[0].text,
            "completion": completed.completion.values,
        }
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
