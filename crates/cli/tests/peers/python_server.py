"""A server on the official Python SDK, which speaks both eras over stdio. Its tools ask the client
in the way of the legacy era, which the SDK refuses in the modern one.

usage: python_server.py
"""

import os

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("both", version="1.2.3", instructions="Ask for a name first.")


class Name(BaseModel):
    username: str
    email: str


@server.tool()
async def greet(ctx: Context) -> str:
    """Asks for a name, and greets."""
    answer = await ctx.elicit("Who is there?", schema=Name)
    return f"hello {answer.data.username}"


@server.tool()
async def think(ctx: Context) -> str:
    """Has the model of the client say something."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="say"))
    answer = await ctx.session.create_message([message], max_tokens=9)
    return f"thought {answer.content.text}"


@server.tool()
async def touch(ctx: Context) -> str:
    """Reports a change of the note."""
    await ctx.session.send_resource_updated("note://one")
    return "touched"


@server.tool()
async def tell(ctx: Context) -> str:
    """Logs a message."""
    await ctx.session.send_log_message(level="info", data="from tell")
    return "told"


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def process() -> str:
    """Tells which process answers."""
    return str(os.getpid())


@server.prompt()
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review {code}"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "one"


server.run()
