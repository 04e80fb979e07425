// A client of ours that we did not write: the official TypeScript SDK 1.x, which speaks up to 2025-11-25.
// Lists every page of tools, calls one, prints one line of JSON.
//
//   client1.mjs URL | COMMAND ARG…      environment: TOKEN (bearer), TOOL (echo), ARGS (a JSON object), ANSWER (a JSON object:
//                                       what every form is filled in with; without it the client fills in no forms);
//                                       MODE is of no effect here
// READ and PROMPT, a URI and a prompt: lists and reads these as well.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [target, ...args] = process.argv.slice(2);
if (!target) throw new Error('usage: client1.mjs URL | COMMAND ARG…');
const { TOKEN, TOOL = 'echo', ARGS = '{"message":"hi"}', ANSWER, READ, PROMPT } = process.env;
const headers = TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {};
const transport = /^https?:\/\//.test(target)
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' });

// The 1.x client keeps the negotiated version to itself but tells the transport; stdio has no use for it, so it is caught here.
let protocol;
const passOn = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  passOn?.(version);
};

const capabilities = ANSWER ? { elicitation: {} } : {};
const client = new Client({ name: 'peer-typescript-1', version: '1.0.0' }, { capabilities });
if (ANSWER) client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: JSON.parse(ANSWER) }));
await client.connect(transport);
const names = [];
let cursor;
do {
  const page = await client.listTools({ cursor });
  names.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
} while (cursor !== undefined);
const result = await client.callTool({ name: TOOL, arguments: JSON.parse(ARGS) });
const beside = {};
if (READ) {
  beside.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  beside.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  beside.read = await client.readResource({ uri: READ });
  beside.prompt = await client.getPrompt({ name: PROMPT, arguments: { code: 'let x = 1;' } });
}
console.log(JSON.stringify({ protocol, tools: names.sort(), result, ...beside }));
await client.close();
