// Uses all that server-everything offers through us, by an official TypeScript SDK, and prints one line of JSON: what everything.py
// does, with the SDK that speaks up to 2025-11-25 or with the one that speaks both generations.
//
//   everything.mjs URL | COMMAND ARG…      environment: TOKEN (bearer), SDK (1 or 2), and for 2 also MODE (auto, legacy or a version)
const [target, ...args] = process.argv.slice(2);
if (!target) throw new Error('usage: everything.mjs URL | COMMAND ARG…');
const { TOKEN, SDK = '2', MODE = 'auto' } = process.env;
const URI = 'demo://resource/dynamic/text/7';
const PATIENCE_MILLISECONDS = 120_000;

/** A client with `capabilities`, connected; `on(METHOD, handler)` answers requests, and `heard` is fulfilled by an update of URI. */
async function connect(capabilities, answers) {
  let tell;
  const heard = new Promise((resolve, reject) => {
    tell = resolve;
    setTimeout(() => reject(new Error('nobody told of the change')), PATIENCE_MILLISECONDS).unref();
  });
  heard.catch(() => {}); // whoever waits for it hears of it
  const hear = ({ params }) => params.uri === URI && tell(params.uri);
  const about = { name: `peer-everything-${SDK}`, version: '1.0.0' };
  const requestInit = { headers: { Authorization: `Bearer ${TOKEN}` } };
  const stdio = { command: target, args, env: process.env, stderr: 'inherit' };
  const isHttp = /^https?:\/\//.test(target);
  if (SDK === '1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(about, { capabilities });
    const schemas = { 'sampling/createMessage': types.CreateMessageRequestSchema, 'elicitation/create': types.ElicitRequestSchema };
    for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(schemas[method], () => answer);
    client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, hear);
    await client.connect(isHttp ? new StreamableHTTPClientTransport(new URL(target), { requestInit }) : new StdioClientTransport(stdio));
    return { client, heard, protocol: '2025-11-25' };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const mode = ['auto', 'legacy'].includes(MODE) ? MODE : { pin: MODE };
  const client = new Client(about, { capabilities, versionNegotiation: { mode } });
  for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, () => answer);
  client.setNotificationHandler('notifications/resources/updated', hear);
  await client.connect(isHttp ? new StreamableHTTPClientTransport(new URL(target), { requestInit }) : new StdioClientTransport(stdio));
  return { client, heard, protocol: client.getNegotiatedProtocolVersion() };
}

async function use() {
  const { client, heard, protocol } = await connect({}, {});
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const read = await client.readResource({ uri: URI });
  const { prompts } = await client.listPrompts();
  const prompt = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Oslo' } });
  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'completable-prompt' },
    argument: { name: 'name', value: 'A' },
    context: { arguments: { department: 'Engineering' } },
  });
  const subscription = protocol === '2026-07-28' ? await client.listen({ resourceSubscriptions: [URI] }) : await client.subscribeResource({ uri: URI });
  await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
  const updated = await heard;
  if (protocol === '2026-07-28') await subscription.close();
  else await client.unsubscribeResource({ uri: URI });
  await client.close();
  return {
    protocol,
    resources: resources.map((resource) => resource.uri),
    templates: resourceTemplates.map((template) => template.uriTemplate),
    read: read.contents[0].text,
    prompts: prompts.map((prompt) => prompt.name),
    prompt: prompt.messages[0].content.text,
    completion: completion.values,
    updated,
  };
}

async function ask() {
  const { client } = await connect(
    { sampling: {}, elicitation: {} },
    {
      'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'by the model' }, model: 'none' },
      'elicitation/create': { action: 'accept', content: { name: 'by the person' } },
    },
  );
  const textOf = ({ content }) => content.map((block) => block.text).join('\n');
  const sampling = textOf(await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'q', maxTokens: 10 } }));
  const elicitation = textOf(await client.callTool({ name: 'trigger-elicitation-request', arguments: {} }));
  await client.close();
  return { sampling, elicitation };
}

console.log(JSON.stringify({ ...(await use()), ...(await ask()) }));
process.exit(0);
