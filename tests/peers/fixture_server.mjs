// The second fixture upstream of the conformance suite, on the official TypeScript SDK 2.x: what fixture_server.py offers, once more,
// so that what holds for one SDK's way of speaking is not taken for what holds for the protocol.
//
//   fixture_server.mjs           serves stdio
//   fixture_server.mjs --http    serves http://127.0.0.1:PORT/mcp, a free port, and prints `listening PORT`
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import * as sdk from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const STEP_MILLISECONDS = 50; // the suite asks for about 50 ms between messages
const WATCHED = 'test://watched-resource';
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const states = sdk.createRequestStateCodec({ key: randomBytes(32) });
const state = { hasDynamicTool: false, hasDynamicPrompt: false };
const sessions = new Set(); // servers of 2025-11-25 sessions, who hear of changes by notifications
let modern; // serves 2026-07-28 over HTTP, and tells those who listen

const pause = (steps = 1) => new Promise((resolve) => setTimeout(resolve, steps * STEP_MILLISECONDS));
const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const audio = { type: 'audio', data: WAV, mimeType: 'audio/wav' };
const resource = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });
const done = (...content) => ({ content });
const isModern = (ctx) => ctx.mcpReq.envelope !== undefined;

// Questions: by requests to the client up to 2025-11-25, in rounds since

const string = { type: 'string' };
const form = (message, properties, required = Object.keys(properties)) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties, required } },
});
const sampling = (prompt) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 },
});
const roots = { method: 'roots/list', params: {} };
const name = form('What is your name?', { name: string });
const confirm = form('Please confirm', { ok: { type: 'boolean' } });

/** What the client of this request can do. */
function declared(ctx, server) {
  return (isModern(ctx) ? ctx.mcpReq.envelope[sdk.CLIENT_CAPABILITIES_META_KEY] : server.getClientCapabilities()) ?? {};
}

function needs(ctx, server, capability) {
  if (declared(ctx, server)[capability] !== undefined) return;
  throw new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { [capability]: {} } });
}

/** What an answer holds, as one text. */
function said(answer) {
  if (answer.roots) return 'its roots'; // not which: a gateway tells of those alone that lie within its own
  if (answer.action) return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
  return answer.content?.text ?? 'no text';
}

class Asking extends Error {
  constructor(result) {
    super('the client is asked first');
    this.result = result;
  }
}

/** The answers to `questions`, by their keys; ends the request with them where it belongs to 2026-07-28 and has no answers yet. */
async function ask({ ctx, server }, questions, requestState) {
  for (const { method } of Object.values(questions)) needs(ctx, server, method.split('/')[0]);
  if (isModern(ctx)) {
    const answers = ctx.mcpReq.inputResponses ?? {};
    if (Object.keys(questions).every((key) => key in answers)) return answers;
    const sealed = requestState === undefined ? {} : { requestState: await states.mint(requestState) };
    throw new Asking({ resultType: 'input_required', inputRequests: questions, ...sealed });
  }
  const answers = {};
  for (const [key, question] of Object.entries(questions)) answers[key] = await ctx.mcpReq.send(question);
  return answers;
}

// Said in mid-call

async function log({ ctx, server }, message) {
  if (isModern(ctx)) return ctx.mcpReq.log('info', message, 'fixture');
  if (LEVELS.indexOf('info') < LEVELS.indexOf(server.wanted ?? 'debug')) return undefined;
  return ctx.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', logger: 'fixture', data: message } });
}

/** Tells of a changed list: whoever listens at 2026-07-28, and each session of an older revision. */
async function tell({ server: own }, kind) {
  modern?.notify[`${kind}Changed`]();
  const hearers = modern ? sessions : new Set([...sessions, own]); // on stdio the one connection tells its listeners itself
  for (const server of hearers) await server.notification({ method: `notifications/${kind}/list_changed` }).catch(() => sessions.delete(server));
}

// Tools

const rich = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: string, city: string } } },
  properties: {
    name: string,
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};
const schemas = {
  json_schema_2020_12_tool: rich,
  test_sampling: { type: 'object', properties: { prompt: string } },
  test_elicitation: { type: 'object', properties: { message: string } },
  test_x_mcp_header: { type: 'object', properties: { region: { ...string, 'x-mcp-header': 'Region' } } },
};
const titled = [1, 2, 3].map((number) => ({ const: `value${number}`, title: `Option ${number}` }));
const options = ['option1', 'option2', 'option3'];
const defaults = {
  name: { ...string, default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
};
const enums = {
  untitledSingle: { type: 'string', enum: options },
  titledSingle: { type: 'string', oneOf: titled },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
  titledMulti: { type: 'array', items: { anyOf: titled } },
};

const asksOnce = (key, question, requestState) => async (call) => {
  const answers = await ask(call, { [key]: question(call) }, requestState);
  return done(text(`state-ok: ${said(answers[key])}`));
};

/** Each is `async ({ ctx, server, arguments }) => result`. */
const tools = {
  test_simple_text: async () => done(text('This is a simple text response for testing.')),
  test_image_content: async () => done(image),
  test_audio_content: async () => done(audio),
  test_embedded_resource: async () => done(resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  test_multiple_content_types: async () =>
    done(text('Multiple content types test:'), image, resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')),
  test_error_handling: async () => ({ ...done(text('This tool intentionally returns an error for testing')), isError: true }),
  json_schema_2020_12_tool: async (call) => done(text(`Called with ${Object.keys(call.arguments).sort()}`)),
  test_x_mcp_header: async (call) => done(text(`region=${call.arguments.region}`)),

  test_tool_with_logging: async (call) => {
    await log(call, 'Tool execution started');
    await pause();
    await log(call, 'Tool processing data');
    await pause();
    await log(call, 'Tool execution completed');
    return done(text('Tool with logging executed'));
  },
  test_logging_tool: async (call) => {
    await log(call, 'A message for those who asked for it');
    return done(text('Logged'));
  },
  test_tool_with_progress: async ({ ctx }) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      if (progress > 0) await pause();
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    return done(text('Tool with progress executed'));
  },
  test_trigger_tool_change: async (call) => {
    state.hasDynamicTool = !state.hasDynamicTool;
    await tell(call, 'tools');
    return done(text('The list of tools has changed'));
  },
  test_trigger_prompt_change: async (call) => {
    state.hasDynamicPrompt = !state.hasDynamicPrompt;
    await tell(call, 'prompts');
    return done(text('The list of prompts has changed'));
  },
  test_dynamic_tool: async () => done(text('Still here')),

  test_missing_capability: async ({ ctx, server }) => {
    needs(ctx, server, 'sampling');
    return done(text('The client can sample'));
  },
  test_streaming_elicitation: async (call) => {
    if (!isModern(call.ctx) || declared(call.ctx, call.server).elicitation === undefined) return done(text('Nothing to ask'));
    const answers = await ask(call, { user_name: name });
    return done(text(said(answers.user_name)));
  },
  test_sampling: async (call) => {
    const answers = await ask(call, { sample: sampling(call.arguments.prompt ?? 'What do you think?') });
    return done(text(`LLM response: ${said(answers.sample)}`));
  },
  test_elicitation: asksOnce('user', (call) => form(call.arguments.message ?? 'Who are you?', { username: string, email: string })),
  test_elicitation_sep1034_defaults: asksOnce('form', () => form('Is this right?', defaults, [])),
  test_elicitation_sep1330_enums: asksOnce('form', () => form('Which ones?', enums, [])),
  test_input_required_result_elicitation: async (call) => {
    const { user_name: answer } = await ask(call, { user_name: name });
    return done(text(`Hello, ${answer.content?.name ?? 'stranger'}!`));
  },
  test_input_required_result_sampling: asksOnce('capital_question', () => sampling('What is the capital of France?')),
  test_input_required_result_list_roots: asksOnce('client_roots', () => roots),
  test_input_required_result_request_state: async (call) => {
    const answers = await ask(call, { confirm }, 'asked');
    if (isModern(call.ctx) && call.ctx.mcpReq.requestState() !== 'asked') throw new Error('the state of the first round is missing');
    return done(text(`state-ok: ${said(answers.confirm)}`));
  },
  test_input_required_result_tampered_state: asksOnce('confirm', () => confirm, 'sealed'),
  test_input_required_result_multiple_inputs: async (call) => {
    const questions = { user_name: name, greeting: sampling('Generate a greeting'), client_roots: roots };
    const answers = await ask(call, questions, 'asked-for-three');
    return done(text(Object.keys(questions).map((key) => said(answers[key])).join('; ')));
  },
  test_input_required_result_multi_round: async (call) => {
    const step2 = form('Step 2: What is your favorite color?', { color: string });
    const known = isModern(call.ctx) ? call.ctx.mcpReq.requestState() : undefined;
    if (!known?.step1) {
      const { step1 } = await ask(call, { step1: form('Step 1: What is your name?', { name: string }) }, {});
      const answers = await ask(call, { step2 }, { step1: said(step1) });
      return done(text(`${said(step1)}; ${said(answers.step2)}`));
    }
    const answers = await ask(call, { step2 }, known);
    return done(text(`${known.step1}; ${said(answers.step2)}`));
  },
  test_input_required_result_capabilities: async (call) => {
    const can = declared(call.ctx, call.server);
    const questions = {};
    if (can.elicitation !== undefined) questions.ask = name;
    if (can.sampling !== undefined) questions.sample = sampling('Say hello');
    const answers = await ask(call, questions, 'asked-what-can-be-answered');
    return done(text(Object.keys(questions).map((key) => said(answers[key])).join('; ') || 'Nothing to ask'));
  },
};

// Resources and prompts

const resources = { 'test://static-text': 'text/plain', 'test://static-binary': 'image/png', [WATCHED]: 'text/plain' };

function read(uri) {
  if (uri === 'test://static-text') return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' };
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG };
  if (uri === WATCHED) return { uri, mimeType: 'text/plain', text: 'Watched content' };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw new sdk.ResourceNotFoundError(uri);
  return { uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
}

const user = (content) => ({ role: 'user', content });
const prompts = {
  test_simple_prompt: { run: async () => [user(text('This is a simple prompt for testing.'))] },
  test_prompt_with_arguments: {
    takes: ['arg1', 'arg2'],
    run: async (call) => [user(text(`Prompt with arguments: arg1='${call.arguments.arg1}', arg2='${call.arguments.arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    takes: ['resourceUri'],
    run: async (call) => [
      user(resource(call.arguments.resourceUri, 'text/plain', 'Embedded resource content for testing.')),
      user(text('Please process the embedded resource above.')),
    ],
  },
  test_prompt_with_image: { run: async () => [user(image), user(text('Please analyze the image above.'))] },
  test_input_required_result_prompt: {
    run: async (call) => {
      const answers = await ask(call, { user_context: form('What context should the prompt use?', { context: string }) });
      return [user(text(`Use the following context: ${said(answers.user_context)}`))];
    },
  },
  test_dynamic_prompt: { run: async () => [user(text('Still here'))] },
};

// Protocol

function fixture() {
  const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    logging: {},
    completions: {},
  };
  const server = new sdk.Server({ name: 'toolstead-fixture', version: '1.0.0' }, { capabilities, requestState: { verify: states.verify } });
  const orAsking = async (work) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Asking) return error.result;
      throw error;
    }
  };
  const unknown = (what) => new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, `Unknown ${what}`);
  server.setRequestHandler('tools/list', () => ({
    tools: Object.keys(tools)
      .filter((tool) => state.hasDynamicTool || tool !== 'test_dynamic_tool')
      .map((tool) => ({ name: tool, description: `The fixture ${tool}.`, inputSchema: schemas[tool] ?? { type: 'object', properties: {} } })),
  }));
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    if (!Object.hasOwn(tools, params.name)) throw unknown(`tool: ${params.name}`);
    return orAsking(() => tools[params.name]({ ctx, server, arguments: params.arguments ?? {} }));
  });
  server.setRequestHandler('resources/list', () => ({
    resources: Object.entries(resources).map(([uri, mimeType]) => ({ uri, name: uri, description: 'For the suite.', mimeType })),
  }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', description: 'Data by its id.', mimeType: 'application/json' }],
  }));
  server.setRequestHandler('resources/read', ({ params }) => ({ contents: [read(params.uri)] }));
  server.setRequestHandler('resources/subscribe', ({ params }) => read(params.uri) && {});
  server.setRequestHandler('resources/unsubscribe', () => ({}));
  server.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(prompts)
      .filter(([prompt]) => state.hasDynamicPrompt || prompt !== 'test_dynamic_prompt')
      .map(([prompt, { takes = [] }]) => ({
        name: prompt,
        description: `The fixture ${prompt}.`,
        arguments: takes.map((argument) => ({ name: argument, description: 'For the suite.', required: true })),
      })),
  }));
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    if (!Object.hasOwn(prompts, params.name)) throw unknown(`prompt: ${params.name}`);
    const call = { ctx, server, arguments: params.arguments ?? {} };
    return orAsking(async () => ({ messages: await prompts[params.name].run(call) }));
  });
  server.setRequestHandler('completion/complete', ({ params }) => {
    const isKnown = params.ref.name === 'test_prompt_with_arguments' && params.argument.name === 'arg1';
    const words = isKnown ? ['paris', 'park', 'party', 'test', 'testing'].filter((word) => word.startsWith(params.argument.value)) : [];
    return { completion: { values: words, total: words.length, hasMore: false } };
  });
  server.setRequestHandler('logging/setLevel', ({ params }) => {
    server.wanted = params.level;
    return {};
  });
  server.oninitialized = () => sessions.add(server);
  server.onclose = () => sessions.delete(server);
  return server;
}

async function serveHttp() {
  modern = sdk.createMcpHandler(fixture);
  const answerModern = toNodeHandler(modern);
  const transports = new Map();
  const listener = createServer(async (request, response) => {
    const refuse = (status, code, message) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
    };
    if (!sdk.validateHostHeader(request.headers.host, sdk.localhostAllowedHostnames()).ok) return refuse(403, -32000, 'Invalid Host header');
    let body;
    if (request.method === 'POST') {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      try {
        body = JSON.parse(Buffer.concat(chunks).toString());
      } catch {
        return refuse(400, -32700, 'Parse error');
      }
      const inbound = sdk.classifyInboundRequest({
        httpMethod: 'POST',
        protocolVersionHeader: request.headers['mcp-protocol-version'],
        mcpMethodHeader: request.headers['mcp-method'],
        body,
      });
      if (inbound.kind !== 'legacy') return answerModern(request, response, body);
    }
    const id = request.headers['mcp-session-id'];
    if (id === undefined && sdk.isInitializeRequest(body)) {
      const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (session) => transports.set(session, transport),
      });
      const server = fixture();
      const forget = server.onclose;
      await server.connect(transport);
      server.onclose = () => {
        forget();
        transports.delete(transport.sessionId);
      };
      return transport.handleRequest(request, response, body);
    }
    if (id === undefined) return refuse(400, -32000, 'Bad Request: no session');
    if (!transports.has(id)) return refuse(404, -32001, 'Session not found');
    return transports.get(id).handleRequest(request, response, body);
  });
  listener.listen(0, '127.0.0.1', () => console.log('listening', listener.address().port));
}

const flags = process.argv.slice(2).join(' ');
if (flags === '--http') await serveHttp();
else if (flags === '') serveStdio(fixture);
else throw new Error('usage: fixture_server.mjs [--http]');
