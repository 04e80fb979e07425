// Prints docs/internals/conformance.md, for `make conformance`. It is made of the frozen lists and the baselines alone: the runs hold each
// baseline to what fails, exactly, so that the page says what they give.
//
//   node page.mjs
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { here, readBaseline, requirements, revisions } from './suite.mjs';

const versions = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')).dependencies;
const python = /^mcp==(.+)$/m.exec(readFileSync(join(here, 'requirements.txt'), 'utf8'))[1];
const rows = [
  { name: 'A: our server', prefix: 'A' },
  { name: 'B: Python SDK at 2025-11-25', prefix: 'python.2025-11-25' },
  { name: 'C: Python SDK at 2025-11-25', prefix: 'python-stdio.2025-11-25' },
  { name: 'B, C: Python SDK at 2026-07-28', prefix: 'python.2026-07-28' },
  { name: 'B: TypeScript SDK at 2025-11-25', prefix: 'typescript.2025-11-25' },
  { name: 'C: TypeScript SDK at 2025-11-25', prefix: 'typescript-stdio.2025-11-25' },
  { name: 'B, C: TypeScript SDK at 2026-07-28', prefix: 'typescript.2026-07-28' },
  { name: 'D: our client', prefix: 'client' },
];

const table = [];
const missed = [];
for (const { name, prefix } of rows) {
  const scores = [];
  for (const revision of revisions) {
    const file = join(here, 'baseline', `${prefix}.${revision}.yaml`);
    if (!existsSync(file)) throw new Error(`${file} is missing`);
    const { role, entries, reasons } = readBaseline(file);
    const { required } = await requirements(role, revision);
    const lost = new Set(entries.map((entry) => entry.split(':')[0]));
    scores.push(`${required.length - lost.size} of ${required.length}`);
    if (lost.size === 0) continue;
    missed.push(`### ${name}, suite at ${revision}\n`);
    for (const reason of new Set(reasons)) {
      const names = entries.filter((_, index) => reasons[index] === reason).map((entry) => `\`${entry}\``);
      missed.push(`- ${reason}\n  ${names.join(', ')}`);
    }
    missed.push('');
  }
  table.push(`| ${name} | ${scores.join(' | ')} |`);
}

console.log(`# Conformance

What Toolstead reaches in the [official conformance suite](https://github.com/modelcontextprotocol/conformance) (\`@modelcontextprotocol/conformance\` ${versions['@modelcontextprotocol/conformance']}): required scenarios that pass, of those that the suite's frozen list of a revision requires. \`make conformance\` runs it and writes this page; CI fails where a run and the page differ.

| set-up | suite at ${revisions.join(' | suite at ')} |
| --- | --- | --- |
${table.join('\n')}

| set-up | stands where |
| --- | --- |
| A | the suite, our HTTP server, a provider that only tests have |
| B | the suite, our HTTP server, a fixture on that SDK by streamable HTTP |
| C | the suite, our HTTP server, the same fixture by stdio |
| D | the suite's mock server, \`toolstead tools\` and \`toolstead call\` |

The token is on in all of them: a relay adds it, because the suite cannot send one.
In B and C the upstream is held to one revision (\`protocol\`) and the suite runs at each, so that clients and servers of both generations meet.

## What counts

- There are two fixtures, on the official SDKs for Python (\`mcp\` ${python}) and TypeScript (\`@modelcontextprotocol/server\` ${versions['@modelcontextprotocol/server']}): \`fixture_server.py\` and \`fixture_server.mjs\` in \`tests/peers\`. Each passes all of both lists when the suite speaks to it directly.
- Through us a scenario passes only if each of its checks that succeeds directly succeeds as well, and if what the suite notes of an answer (contents, lists, messages, forms) is the same. A check that is merely not made is a miss, and so is a warning.
- The audit trail must hold a call of each of the fixture's tools that the suite calls.
- What is missed is named in \`tests/peers/baseline\`, with the reason. An entry that no longer fails is an error, and the lists may only shrink.

## What is missed

${missed.length > 0 ? missed.join('\n').trimEnd() : 'Nothing.'}`);
