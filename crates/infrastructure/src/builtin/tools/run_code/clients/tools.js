// The tools of this run as functions. Each call is a line of JSON over a socket that only this run can use.
(given, require, load) => {
  const net = require('node:net'), path = require('node:path'), url = require('node:url'), vm = require('node:vm');
  const AT_ONCE = 8, place = process.env.TOOLSTEAD_TOOLS;

  /** Error of a failed call: its `kind`, a `message`, and `data` with further facts, if there are any. */
  class ToolError extends Error {
    constructor(kind, message, data) {
      super(message);
      this.kind = kind;
      this.data = data;
    }
  }
  ToolError.prototype.name = 'ToolError';

  /** A connection with at most one request at a time. An idle connection does not keep the process alive. */
  class Connection {
    constructor() {
      this.parts = [];
      this.socket = net.connect(place);
      this.socket.on('data', (chunk) => this.take(chunk));
      this.socket.on('error', (error) => this.end(error.message));
      this.socket.on('close', () => this.end('it is closed'));
    }

    ask(line) {
      return new Promise((resolve, reject) => {
        this.answer = { resolve, reject };
        this.socket.ref();
        this.socket.write(line);
      });
    }

    take(chunk) {
      const end = chunk.indexOf(10);
      this.parts.push(end < 0 ? chunk : chunk.subarray(0, end));
      if (end < 0 || !this.answer) return;
      const { resolve } = this.answer;
      const text = Buffer.concat(this.parts).toString('utf8');
      this.answer = undefined;
      this.parts = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : [];
      this.socket.unref();
      resolve(text);
    }

    end(why) {
      this.isOver = true;
      this.answer?.reject(why);
      this.answer = undefined;
    }
  }

  const idle = [], waiting = [];
  let busy = 0;

  async function ask(request) {
    const line = JSON.stringify(request) + '\n';
    if (!place) throw new ToolError('unavailable', 'this run has no tools');
    if (busy >= AT_ONCE) await new Promise((resolve) => waiting.push(resolve));
    else busy += 1;
    let answer;
    try {
      let connection = idle.pop();
      while (connection?.isOver) connection = idle.pop();
      connection ??= new Connection();
      answer = JSON.parse(await connection.ask(line));
      if (answer.error) connection.socket.destroy();
      else idle.push(connection);
    } catch (why) {
      throw new ToolError('unavailable', `the tools of this run cannot be reached: ${why}`);
    } finally {
      // The next waiting call takes over the slot; without one, the slot is free again.
      if (waiting.length > 0) waiting.shift()();
      else busy -= 1;
    }
    if (answer.error) throw new ToolError(answer.error.kind, answer.error.message, answer.error.data);
    return answer;
  }

  /** Returns the structured content of a result, or else its text, or its blocks if some are not text. */
  function value(result) {
    const blocks = result.content ?? [];
    const text = blocks.filter((block) => block.type === 'text').map((block) => block.text).join('\n');
    if (result.isError) {
      const kind = result._meta?.['toolstead/errorKind'] ?? 'execution_failed';
      throw new ToolError(kind, text, result.structuredContent);
    }
    return result.structuredContent ?? (blocks.every((block) => block.type === 'text') ? text : blocks);
  }

  const call = async (name, given = {}) => value((await ask({ call: name, arguments: given })).result);

  const isPlain = (thing) => thing !== null && typeof thing === 'object' && !Array.isArray(thing);

  /** Returns the function of a tool, which takes the parameters as one object, or one by one in their order. */
  function functionOf([name, parameters, required]) {
    const one = async (...args) => {
      if (args.length > parameters.length && !(args.length === 1 && isPlain(args[0]))) {
        throw new TypeError(`${name}(${signature(parameters, required)}) is called with ${args.length} arguments`);
      }
      const isObject = args.length === 0 || (args.length === 1 && isPlain(args[0]));
      return call(name, isObject ? args[0] ?? {} : Object.fromEntries(args.map((one, at) => [parameters[at], one])));
    };
    return Object.defineProperty(one, 'name', { value: name });
  }

  const signature = (parameters, required) =>
    `{${parameters.map((name) => name + (required.includes(name) ? '' : '?')).join(', ')}}`;

  /** Functions of `tools` itself. They take precedence over tools of the same names. */
  const own = {
    ToolError,
    call,
    list: () => Object.fromEntries(given.tools.map(([name, ...takes]) => [name, signature(...takes)])),
    help: async (of) => {
      if (of === undefined) {
        const sentence = ({ description }) => (description ?? '').split(/(?<=\.)\s/, 1)[0];
        const takes = own.list();
        const { tools } = await ask({ list: true });
        return tools.map((one) => `${one.name}(${takes[one.name] ?? ''}): ${sentence(one)}`).join('\n');
      }
      const { name } = typeof of === 'function' ? of : tools[of];
      const [tool] = (await ask({ list: name })).tools;
      const { properties = {}, required = [] } = tool.inputSchema ?? {};
      const lines = Object.entries(properties).map(([name, what]) => {
        const among = what.enum ? ` One of ${JSON.stringify(what.enum)}.` : '';
        const isRequired = required.includes(name) ? ', required' : '';
        return `- ${name} (${what.type ?? 'any'}${isRequired}): ${what.description ?? ''}${among}`;
      });
      return [`${tool.name}(${own.list()[tool.name]})`, tool.description ?? '', ...lines].join('\n');
    },
  };

  const named = new Map(given.tools.map((row) => [row[0], functionOf(row)]));
  const snake = (name) => name.replace(/[^A-Za-z0-9_]/g, '_').replace(/^(?=[0-9])/, '_');
  const camel = (name) => snake(name).replace(/(?<=[A-Za-z0-9])_+([A-Za-z0-9])/g, (_, letter) => letter.toUpperCase());
  const attributes = new Map();
  for (const [name, one] of named) {
    for (const attribute of new Set([snake(name), camel(name)])) {
      attributes.set(attribute, [...(attributes.get(attribute) ?? []), one]);
    }
  }

  const unknown = (name) => {
    const plain = (text) => text.toLowerCase().replace(/_/g, '');
    const near = [...named.keys()].filter((other) => plain(other).includes(plain(name)) || plain(name).includes(plain(other)));
    const hint = near.length > 0 ? `did you mean ${near.slice(0, 3).join(', ')}?` : 'tools.list() lists the tools';
    return `this run has no tool "${name}"; ${hint}`;
  };

  const tools = new Proxy(Object.freeze({ ...own }), {
    get(target, name) {
      // With a function `then`, the object would be taken for a promise.
      if (typeof name === 'symbol' || name === 'then' || name === 'toJSON') return undefined;
      if (Object.hasOwn(target, name)) return target[name];
      if (named.has(name)) return named.get(name);
      const found = attributes.get(name) ?? attributes.get(name.replace(/_$/, '')) ?? [];
      if (found.length > 1) {
        throw new TypeError(`"${name}" is ambiguous: ${found.map((one) => one.name).join(', ')}; write tools["..."]`);
      }
      if (found.length === 0) throw new TypeError(unknown(name));
      return found[0];
    },
    has: (target, name) => Object.hasOwn(target, name) || named.has(name) || attributes.has(name),
  });

  /** Describes a thrown value with its line of the code, and without the stack frames of other files. */
  function shown(error) {
    if (!(error instanceof Error) || typeof error.stack !== 'string') {
      return `Uncaught ${require('node:util').inspect(error)}\n`;
    }
    const foreign = /^ +at (.*[( ])?(node:|tools\.js|\[eval)/;
    let stack = error.stack.split('\n').filter((line) => !foreign.test(line)).join('\n');
    if (error instanceof ToolError) stack = stack.replace('ToolError: ', `ToolError: ${error.kind}: `);
    const place = /code\.mjs:(\d+):(\d+)/.exec(stack);
    if (!place || stack.startsWith('code.mjs:')) return `${stack}\n`;
    const [line, column] = [Number(place[1]), Number(place[2])];
    return `code.mjs:${line}\n${given.code.split('\n')[line - 1]}\n${' '.repeat(column - 1)}^\n\n${stack}\n`;
  }

  Object.assign(globalThis, { tools, ToolError });
  process.argv.splice(1, process.argv.length, path.resolve('code.mjs'));
  let isSettled = false;
  process.on('exit', (code) => {
    if (isSettled || code !== 0) return;
    process.stderr.write('code.mjs: it awaits a promise that never settles\n');
    process.exitCode = 13;
  });

  const loaded = new Map();
  async function linked(specifier) {
    const names = await load(specifier);
    const members = Object.keys(names);
    return new vm.SyntheticModule(members, function () {
      for (const member of members) this.setExport(member, names[member]);
    }, { identifier: specifier });
  }

  (async () => {
    const code = new vm.SourceTextModule(given.code, {
      identifier: 'code.mjs',
      importModuleDynamically: (specifier) => load(specifier),
      initializeImportMeta(meta) {
        meta.url = url.pathToFileURL(path.resolve('code.mjs')).href;
        [meta.filename, meta.dirname] = [path.resolve('code.mjs'), process.cwd()];
      },
    });
    await code.link((specifier) => {
      if (!loaded.has(specifier)) loaded.set(specifier, linked(specifier));
      return loaded.get(specifier);
    });
    await code.evaluate();
  })().catch((error) => {
    isSettled = true;
    if (error instanceof SyntaxError && !/code\.mjs:/.test(error.stack)) {
      // Node knows the location, and prints it only for an error that nothing catches.
      error.stack = `${error.name}: ${error.message}`;
      setImmediate(() => { throw error; });
      return;
    }
    process.stderr.write(shown(error));
    process.exit(1);
  }).finally(() => {
    isSettled = true;
  });
}
