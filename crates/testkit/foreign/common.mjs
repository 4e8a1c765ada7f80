// What the servers on the TypeScript SDKs share: the fixture, their arguments, and HTTP.
//
// MODULES names the folder whose node_modules hold the SDKs.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

export const require = createRequire(`${process.env.MODULES}/package.json`);

export const fixture = JSON.parse(readFileSync(new URL('fixture.json', import.meta.url), 'utf8'));

export const { values: options } = parseArgs({
    options: {
        transport: { type: 'string', default: 'http' },
        era: { type: 'string', default: 'both' }
    }
});

/** The fixture's value with every `{name}` replaced by the argument of that name. */
export function filled(value, args = {}) {
    if (typeof value === 'string') {
        return value.replaceAll(/\{(\w+)\}/g, (whole, name) => args[name] ?? whole);
    }
    if (Array.isArray(value)) {
        return value.map(item => filled(item, args));
    }
    if (value !== null && typeof value === 'object') {
        return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, args)]));
    }
    return value;
}

/** A definition as clients see it. */
export function definition(entry) {
    const { result, messages, contents, progress, logs, asks, rounds, state, needs, changes, reconnects, onlyDeclared, ...shown } = entry;
    return shown;
}

/** The contents of a resource, or nothing if there is none at this address. */
export function read(uri) {
    const { template, resources } = fixture;
    const found = resources.find(resource => resource.uri === uri);
    const [, id] = /^test:\/\/template\/(.+)\/data$/.exec(uri) ?? [];
    const source = found ?? (id && template);
    return source && { contents: [{ uri, mimeType: source.mimeType, ...filled(source.contents, { id }) }] };
}

/** The capability that a client declares for a request of this method. */
export const capability = method => method.split('/')[0];

export const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

/** Events are kept in memory, so that clients can resume their streams. */
export class Events {
    #kept = [];

    async storeEvent(streamId, message) {
        this.#kept.push({ streamId, message });
        return String(this.#kept.length);
    }

    async replayEventsAfter(last, { send }) {
        const { streamId } = this.#kept[Number(last) - 1];
        for (const [index, event] of this.#kept.entries()) {
            // The event that primes a stream is an empty object.
            const message = Object.keys(event.message).length > 0;
            if (index >= Number(last) && event.streamId === streamId && message) {
                await send(String(index + 1), event.message);
            }
        }
        return streamId;
    }
}

/** Listens on a free port and prints the URL. The handler gets the parsed body. */
export function listen(path, handle) {
    const server = createServer(async (request, response) => {
        const local = name => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(name);
        const { host = '', origin } = request.headers;
        if (!local(host) || (origin !== undefined && !local(origin.replace(/^\w+:\/\//, '')))) {
            response.writeHead(403).end('Forbidden');
            return;
        }
        let body;
        if (request.method === 'POST') {
            const chunks = [];
            for await (const chunk of request) chunks.push(chunk);
            try {
                body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
            } catch {
                const error = { code: -32700, message: 'Parse error' };
                response.writeHead(400, { 'content-type': 'application/json' });
                response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
                return;
            }
        }
        try {
            await handle(request, response, body);
        } catch (error) {
            console.error(error);
            if (!response.headersSent) response.writeHead(500).end();
        }
    });
    server.listen(0, '127.0.0.1', () => {
        console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}${path}` }));
    });
}

/**
 * Sessions of streamable HTTP: `open` makes a transport for each, with the options it is given, and connects
 * a server to it.
 */
export function sessions(open) {
    const transports = new Map();
    return async (request, response, body) => {
        const id = request.headers['mcp-session-id'];
        let transport = transports.get(id);
        if (transport === undefined) {
            const begins = id === undefined && body?.method === 'initialize';
            if (!begins) {
                const [status, code, message] = id === undefined ? [400, -32000, 'Session ID required'] : [404, -32001, 'Session not found'];
                response.writeHead(status, { 'content-type': 'application/json' });
                response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
                return;
            }
            transport = await open({
                sessionIdGenerator: () => crypto.randomUUID(),
                eventStore: new Events(),
                retryInterval: 500,
                onsessioninitialized: session => void transports.set(session, transport),
                onsessionclosed: session => void transports.delete(session)
            });
        }
        await transport.handleRequest(request, response, body);
    };
}
