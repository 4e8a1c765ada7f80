// The fixture on the TypeScript SDK, 1.x, which speaks the legacy era only: HTTP, SSE or stdio.

import { capability, definition, filled, fixture, listen, options, pause, read, require, sessions } from './common.mjs';

const { Server } = require('@modelcontextprotocol/sdk/server/index.js');
const { SSEServerTransport } = require('@modelcontextprotocol/sdk/server/sse.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = require('@modelcontextprotocol/sdk/server/streamableHttp.js');
const types = require('@modelcontextprotocol/sdk/types.js');

const RESULTS = {
    'elicitation/create': types.ElicitResultSchema,
    'sampling/createMessage': types.CreateMessageResultSchema,
    'roots/list': types.ListRootsResultSchema
};

/** Asks all questions of all rounds, as a legacy server does. */
async function ask(entry, server, { sendRequest }) {
    const declared = server.getClientCapabilities() ?? {};
    for (const round of entry.rounds ?? []) {
        const asked = Object.values(round).filter(({ method }) => !entry.onlyDeclared || capability(method) in declared);
        await Promise.all(asked.map(request => sendRequest(request, RESULTS[request.method])));
    }
}

async function call(tool, args, server, extra) {
    const token = extra._meta?.progressToken;
    for (const progress of token === undefined ? [] : (tool.progress ?? [])) {
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken: token, progress, total: 100 } });
        await pause(50);
    }
    for (const data of tool.logs ?? []) {
        await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
        await pause(50);
    }
    if (tool.reconnects) {
        extra.closeSSEStream?.();
        await pause(100);
    }
    if (tool.changes === 'tools') await server.sendToolListChanged();
    if (tool.changes === 'prompts') await server.sendPromptListChanged();
    try {
        if (tool.asks !== undefined) {
            const answer = await extra.sendRequest(filled(tool.asks, args), RESULTS[tool.asks.method]);
            return { content: [{ type: 'text', text: `The client answered: ${JSON.stringify(answer)}` }] };
        }
        await ask(tool, server, extra);
    } catch (error) {
        return { isError: true, content: [{ type: 'text', text: error.message }] };
    }
    return tool.result;
}

function server() {
    const capabilities = {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        completions: {}
    };
    const server = new Server({ name: 'typescript-fixture', version: '1.0.0' }, { capabilities, enforceStrictCapabilities: true });
    server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: fixture.tools.map(definition) }));
    server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
        const tool = fixture.tools.find(({ name }) => name === params.name);
        if (tool === undefined) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
        return call(tool, params.arguments, server, extra);
    });
    server.setRequestHandler(types.ListPromptsRequestSchema, () => ({ prompts: fixture.prompts.map(definition) }));
    server.setRequestHandler(types.GetPromptRequestSchema, async ({ params }, extra) => {
        const prompt = fixture.prompts.find(({ name }) => name === params.name);
        await ask(prompt, server, extra);
        return { messages: filled(prompt.messages, params.arguments) };
    });
    server.setRequestHandler(types.ListResourcesRequestSchema, () => ({ resources: fixture.resources.map(definition) }));
    server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [definition(fixture.template)] }));
    server.setRequestHandler(types.ReadResourceRequestSchema, ({ params }) => {
        const found = read(params.uri);
        if (found === undefined) throw new types.McpError(-32002, 'Resource not found', { uri: params.uri });
        return found;
    });
    for (const schema of [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema, types.SetLevelRequestSchema]) {
        server.setRequestHandler(schema, () => ({}));
    }
    server.setRequestHandler(types.CompleteRequestSchema, () => ({
        completion: { values: ['test', 'testing'], total: 2, hasMore: false }
    }));
    return server;
}

if (options.transport === 'stdio') {
    await server().connect(new StdioServerTransport());
} else if (options.transport === 'sse') {
    const transports = new Map();
    listen('/sse', async (request, response, body) => {
        if (request.method === 'GET') {
            const transport = new SSEServerTransport('/messages', response);
            transports.set(transport.sessionId, transport);
            await server().connect(transport);
            return;
        }
        const id = new URL(request.url, 'http://localhost').searchParams.get('sessionId');
        const transport = transports.get(id);
        if (transport === undefined) response.writeHead(404).end();
        else await transport.handlePostMessage(request, response, body);
    });
} else {
    const legacy = sessions(async given => {
        const transport = new StreamableHTTPServerTransport(given);
        await server().connect(transport);
        return transport;
    });
    listen('/mcp', legacy);
}
