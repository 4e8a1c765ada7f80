"""The fixture on the Python SDK, 1.x, which speaks the legacy era only: HTTP, SSE or stdio."""

import asyncio
import contextlib

from fixture import FIXTURE, PROMPTS, TEMPLATE, TOOLS, definition, filled, options, read, serve
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import McpError
from mcp.shared.message import ServerMessageMetadata
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

REQUESTS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
SECURITY = TransportSecuritySettings(
    allowed_hosts=["127.0.0.1:*", "localhost:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
)
server = Server("python-fixture", version="1.0.0")


def answers(request):
    """Registers a handler, which returns the result as JSON."""

    def register(handler):
        results = {
            types.CallToolRequest: types.CallToolResult,
            types.ListToolsRequest: types.ListToolsResult,
            types.ListPromptsRequest: types.ListPromptsResult,
            types.GetPromptRequest: types.GetPromptResult,
            types.ListResourcesRequest: types.ListResourcesResult,
            types.ListResourceTemplatesRequest: types.ListResourceTemplatesResult,
            types.ReadResourceRequest: types.ReadResourceResult,
            types.CompleteRequest: types.CompleteResult,
        }

        async def handle(message):
            result = await handler(message.params)
            return types.ServerResult(results.get(request, types.EmptyResult).model_validate(result))

        server.request_handlers[request] = handle
        return handler

    return register


async def ask(question):
    """Asks along with the answer to the call, not on the stream that clients may have opened besides."""
    context = server.request_context
    request, result = REQUESTS[question["method"]]
    declared = context.session.client_params.capabilities
    if getattr(declared, question["method"].split("/")[0]) is None:
        raise McpError(types.ErrorData(code=types.INVALID_REQUEST, message=f"The client cannot {question['method']}"))
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    return await context.session.send_request(
        types.ServerRequest(request.model_validate(question)), result, metadata=metadata
    )


async def ask_all(entry):
    declared = server.request_context.session.client_params.capabilities
    for round in entry.get("rounds", []):
        asked = [
            ask(question)
            for question in round.values()
            if not entry.get("onlyDeclared") or getattr(declared, question["method"].split("/")[0]) is not None
        ]
        await asyncio.gather(*asked)


@answers(types.ListToolsRequest)
async def list_tools(_):
    return {"tools": [definition(tool) for tool in TOOLS.values()]}


@answers(types.CallToolRequest)
async def call_tool(params):
    tool, context = TOOLS.get(params.name), server.request_context
    if tool is None:
        raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}"))
    related = {"related_request_id": context.request_id}
    token = context.meta.progressToken if context.meta else None
    for progress in tool.get("progress", []) if token is not None else []:
        await context.session.send_progress_notification(token, progress, 100, **related)
        await asyncio.sleep(0.05)
    for line in tool.get("logs", []):
        await context.session.send_log_message("info", line, **related)
        await asyncio.sleep(0.05)
    if tool.get("changes") == "tools":
        await context.session.send_tool_list_changed()
    if tool.get("changes") == "prompts":
        await context.session.send_prompt_list_changed()
    try:
        if "asks" in tool:
            answer = await ask(filled(tool["asks"], params.arguments))
            return {"content": [{"type": "text", "text": f"The client answered: {answer.model_dump_json()}"}]}
        await ask_all(tool)
    except McpError as error:
        return {"isError": True, "content": [{"type": "text", "text": str(error)}]}
    return tool["result"]


@answers(types.ListPromptsRequest)
async def list_prompts(_):
    return {"prompts": [definition(prompt) for prompt in PROMPTS.values()]}


@answers(types.GetPromptRequest)
async def get_prompt(params):
    prompt = PROMPTS[params.name]
    await ask_all(prompt)
    return {"messages": filled(prompt["messages"], params.arguments)}


@answers(types.ListResourcesRequest)
async def list_resources(_):
    return {"resources": [definition(resource) for resource in FIXTURE["resources"]]}


@answers(types.ListResourceTemplatesRequest)
async def list_templates(_):
    return {"resourceTemplates": [definition(TEMPLATE)]}


@answers(types.ReadResourceRequest)
async def read_resource(params):
    contents = read(str(params.uri))
    if contents is None:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": str(params.uri)}))
    return {"contents": [contents]}


@answers(types.CompleteRequest)
async def complete(_):
    return {"completion": {"values": ["test", "testing"], "total": 2, "hasMore": False}}


@answers(types.SubscribeRequest)
@answers(types.UnsubscribeRequest)
@answers(types.SetLevelRequest)
async def nothing(_):
    return {}


def greeting():
    changes = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    made = server.create_initialization_options(notification_options=changes)
    made.capabilities.resources.subscribe = True
    return made


async def run(streams):
    await server.run(streams[0], streams[1], greeting())


async def over_pipes():
    async with stdio_server() as streams:
        await run(streams)


def over_sse():
    transport = SseServerTransport("/messages/", security_settings=SECURITY)

    async def stream(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await run(streams)
        return Response()

    return Starlette(routes=[Route("/sse", stream), Mount("/messages/", app=transport.handle_post_message)])


def over_http():
    manager = StreamableHTTPSessionManager(server, security_settings=SECURITY)

    class Endpoint:
        async def __call__(self, scope, receive, send):
            await manager.handle_request(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with manager.run():
            yield

    return Starlette(routes=[Route("/mcp", Endpoint())], lifespan=lifespan)


match options().transport:
    case "stdio":
        asyncio.run(over_pipes())
    case "sse":
        serve(over_sse(), "/sse")
    case _:
        serve(over_http(), "/mcp")
