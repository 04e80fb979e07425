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
  { name: 'A: server', prefix: 'A' },
  { name: 'B: Python SDK at 2025-11-25', prefix: 'python.2025-11-25' },
  { name: 'C: Python SDK at 2025-11-25', prefix: 'python-stdio.2025-11-25' },
  { name: 'B, C: Python SDK at 2026-07-28', prefix: 'python.2026-07-28' },
  { name: 'B: TypeScript SDK at 2025-11-25', prefix: 'typescript.2025-11-25' },
  { name: 'C: TypeScript SDK at 2025-11-25', prefix: 'typescript-stdio.2025-11-25' },
  { name: 'B, C: TypeScript SDK at 2026-07-28', prefix: 'typescript.2026-07-28' },
  { name: 'D: client', prefix: 'client' },
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

Results in the [official conformance suite](https://github.com/modelcontextprotocol/conformance) (\`@modelcontextprotocol/conformance\` ${versions['@modelcontextprotocol/conformance']}): passed scenarios of those that the suite's frozen list of a revision requires. \`make conformance\` runs it and writes this page; CI fails if a run and the page differ.

| set-up | suite at ${revisions.join(' | suite at ')} |
| --- | --- | --- |
${table.join('\n')}

| set-up | components |
| --- | --- |
| A | the suite, Toolstead's HTTP server, a test provider |
| B | the suite, Toolstead's HTTP server, a fixture on that SDK over streamable HTTP |
| C | the suite, Toolstead's HTTP server, that fixture over stdio |
| D | the suite's mock server, \`toolstead tools\` and \`toolstead call\` |

All set-ups use the token; a relay adds it, because the suite cannot send one. In B and C the upstream server is fixed to one revision (\`protocol\`) and the suite runs at each, so all combinations of generations are covered.

## Criteria

- Two fixtures use the official SDKs for Python (\`mcp\` ${python}) and TypeScript (\`@modelcontextprotocol/server\` ${versions['@modelcontextprotocol/server']}): \`fixture_server.py\` and \`fixture_server.mjs\` in \`tests/peers\`. Each passes both complete lists when the suite tests it directly.
- Through Toolstead a scenario passes only if each check that succeeds directly succeeds too, and what the suite records of an answer (contents, messages, forms) is equal; lists of tools, prompts and resources contain at least the same entries. A skipped check and a warning are failures.
- The audit log must contain a call of each fixture tool that the suite calls.
- Failures are listed in \`tests/peers/baseline\` with the reason. An entry that passes is an error, unless it is marked \`# by time\`, because its outcome depends on the speed of the machine. The lists may only shrink.

## Failures

${missed.length > 0 ? missed.join('\n').trimEnd() : 'Nothing.'}`);
