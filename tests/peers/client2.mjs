// A client of ours that we did not write: the official TypeScript SDK 2.x, which speaks both protocol generations.
// Lists every page of tools, calls one, prints one line of JSON. On stdio it starts the server twice where it negotiates.
//
//   client2.mjs URL | COMMAND ARG…      environment: TOKEN (bearer), MODE (auto, legacy or a version such as 2026-07-28),
//                                       TOOL (echo), ARGS (a JSON object), ANSWER (a JSON object: what every form is
//                                       filled in with; without it the client fills in no forms)
// READ and PROMPT, a URI and a prompt: lists and reads these as well.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, ...args] = process.argv.slice(2);
if (!target) throw new Error('usage: client2.mjs URL | COMMAND ARG…');
const { TOKEN, MODE = 'auto', TOOL = 'echo', ARGS = '{"message":"hi"}', ANSWER, READ, PROMPT } = process.env;
const headers = TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {};
const transport = /^https?:\/\//.test(target)
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' });

const mode = ['auto', 'legacy'].includes(MODE) ? MODE : { pin: MODE };
const capabilities = ANSWER ? { elicitation: {} } : {};
const options = { capabilities, versionNegotiation: { mode } };
const client = new Client({ name: 'peer-typescript-2', version: '1.0.0' }, options);
if (ANSWER) client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: JSON.parse(ANSWER) }));
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
console.log(JSON.stringify({ protocol: client.getNegotiatedProtocolVersion(), tools: names.sort(), result, ...beside }));
await client.close();
