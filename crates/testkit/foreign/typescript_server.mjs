// The fixture on the TypeScript SDK, 2.x: HTTP or stdio, both eras or one.

import { capability, definition, filled, fixture, listen, options, pause, read, require, sessions } from './common.mjs';

const { CLIENT_CAPABILITIES_META_KEY, McpServer, ResourceNotFoundError, ResourceTemplate } = require('@modelcontextprotocol/server');
const { createMcpHandler, createRequestStateCodec, fromJsonSchema, inputRequired } = require('@modelcontextprotocol/server');
const { classifyInboundRequest } = require('@modelcontextprotocol/server');
const { StdioServerTransport, serveStdio } = require('@modelcontextprotocol/server/stdio');
const { NodeStreamableHTTPServerTransport, toNodeHandler } = require('@modelcontextprotocol/node');

const codec = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)) });

/** Announces changes to the streams of `subscriptions/listen`. */
let notifier;

const INPUT = {
    'elicitation/create': inputRequired.elicit,
    'sampling/createMessage': inputRequired.createMessage,
    'roots/list': () => inputRequired.listRoots()
};

/** The next questions of an entry with rounds, or nothing when all are answered. */
async function questions(entry, context, declared) {
    const { inputResponses = {}, requestState } = context.mcpReq;
    const state = requestState();
    const round = state?.entry === entry.name ? state.round : 0;
    const usable = answer => answer !== null && typeof answer === 'object';
    const answered = Object.keys(entry.rounds[round]).every(key => usable(inputResponses[key]));
    const next = answered && (state !== undefined || !entry.state) ? round + 1 : round;
    if (next === entry.rounds.length) return undefined;
    const asked = Object.entries(entry.rounds[next]).filter(([, { method }]) => !entry.onlyDeclared || capability(method) in declared);
    if (asked.length === 0) return undefined;
    return inputRequired({
        inputRequests: Object.fromEntries(asked.map(([key, { method, params }]) => [key, INPUT[method](params)])),
        ...(entry.state && { requestState: await codec.mint({ entry: entry.name, round: next }) })
    });
}

async function call(tool, args, context, server) {
    const { mcpReq } = context;
    const token = mcpReq._meta?.progressToken;
    for (const progress of token === undefined ? [] : (tool.progress ?? [])) {
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress, total: 100 } });
        await pause(50);
    }
    for (const line of tool.logs ?? []) {
        await mcpReq.log('info', line);
        await pause(50);
    }
    if (tool.reconnects) {
        context.http?.closeSSE?.();
        await pause(100);
    }
    if (tool.changes !== undefined) {
        const what = tool.changes === 'tools' ? 'Tool' : 'Prompt';
        notifier?.[`${tool.changes}Changed`]?.();
        server[`send${what}ListChanged`]();
    }
    if (tool.asks !== undefined && options.era === 'modern') {
        const asking = { ...tool, rounds: [{ answer: filled(tool.asks, args) }] };
        return (await questions(asking, context)) ?? { content: [{ type: 'text', text: JSON.stringify(mcpReq.inputResponses) }] };
    }
    if (tool.asks !== undefined) {
        const answer = await mcpReq.send(filled(tool.asks, args));
        return { content: [{ type: 'text', text: `The client answered: ${JSON.stringify(answer)}` }] };
    }
    if (tool.rounds !== undefined) {
        const declared = mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
        const asked = await questions(tool, context, declared);
        if (asked !== undefined) return asked;
    }
    return tool.result;
}

function server() {
    const server = new McpServer(
        { name: 'typescript-fixture', version: '2.0.0' },
        {
            capabilities: {
                tools: { listChanged: true },
                prompts: { listChanged: true },
                resources: { listChanged: true, subscribe: true },
                logging: {},
                completions: {}
            },
            requestState: { verify: codec.verify }
        }
    );
    for (const tool of fixture.tools) {
        const { description, inputSchema } = tool;
        const config = { description, inputSchema: fromJsonSchema(inputSchema) };
        server.registerTool(tool.name, config, (args, context) => call(tool, args, context, server));
    }
    server.server.setRequestHandler('prompts/list', () => ({ prompts: fixture.prompts.map(definition) }));
    server.server.setRequestHandler('prompts/get', async ({ params }, context) => {
        const prompt = fixture.prompts.find(({ name }) => name === params.name);
        const asked = prompt.rounds && (await questions(prompt, context));
        return asked ?? { messages: filled(prompt.messages, params.arguments) };
    });
    const contents = async uri => {
        const found = read(uri.href);
        if (found === undefined) throw new ResourceNotFoundError(uri.href);
        return found;
    };
    for (const { name, uri, mimeType } of fixture.resources) {
        server.registerResource(name, uri, { mimeType }, contents);
    }
    const { name, uriTemplate, mimeType } = fixture.template;
    server.registerResource(name, new ResourceTemplate(uriTemplate, { list: undefined }), { mimeType }, contents);
    for (const method of ['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel']) {
        server.server.setRequestHandler(method, () => ({}));
    }
    server.server.setRequestHandler('completion/complete', () => ({
        completion: { values: ['test', 'testing'], total: 2, hasMore: false }
    }));
    return server;
}

if (options.transport === 'stdio') {
    if (options.era === 'legacy') {
        await server().connect(new StdioServerTransport());
    } else {
        serveStdio(server, { legacy: options.era === 'modern' ? 'reject' : 'serve' });
    }
} else {
    const handler = createMcpHandler(server, { legacy: 'reject' });
    notifier = handler.notify;
    const modern = toNodeHandler(handler);
    const legacy = sessions(async given => {
        const transport = new NodeStreamableHTTPServerTransport(given);
        await server().connect(transport);
        return transport;
    });
    listen('/mcp', (request, response, body) => {
        const { kind } = classifyInboundRequest({
            httpMethod: request.method,
            protocolVersionHeader: request.headers['mcp-protocol-version'],
            mcpMethodHeader: request.headers['mcp-method'],
            body
        });
        const toLegacy = options.era === 'legacy' || (options.era === 'both' && kind === 'legacy');
        return toLegacy ? legacy(request, response, body) : modern(request, response, body);
    });
}
