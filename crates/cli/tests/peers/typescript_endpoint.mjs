// The official TypeScript SDK at an endpoint: lists, calls, prompts, reads and completes, and prints
// what came back as one JSON object.
//
// usage: node typescript_endpoint.mjs MODULE URL PREFIX MODE

const [module, url, prefix, mode] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(module);

const client = new Client({ name: "peer", version: "1" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const called = await client.callTool({ name: `${prefix}test_simple_text`, arguments: {} });
const prompt = `${prefix}test_prompt_with_arguments`;
const prompted = await client.getPrompt({ name: prompt, arguments: { arg1: "one", arg2: "two" } });
const read = await client.readResource({ uri: "test://static-text" });
const completed = await client.complete({
  ref: { type: "ref/prompt", name: prompt },
  argument: { name: "arg1", value: "te" },
});
const report = {
  protocol: client.getNegotiatedProtocolVersion(),
  tools: tools.map((tool) => tool.name),
  call: called.content[0].text,
  prompt: prompted.messages[0].content.text,
  resource: read.contents[0].text,
  completion: completed.completion.values,
};
console.log(JSON.stringify(report));
await client.close();
