// What conformance.mjs and check_baseline.mjs share: running the suite's command, its frozen lists, and reading a baseline.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export const here = import.meta.dirname;
export const revisions = ['2025-11-25', '2026-07-28'];

/** Runs `conformance ARGS` under the Node of node_modules/.bin, since the suite needs Node 22; never throws on a failing run. */
export function conformance(args) {
  const bin = join(here, 'node_modules', '.bin');
  const env = { ...process.env, PATH: bin + delimiter + process.env.PATH };
  return new Promise((resolve, reject) => {
    const child = spawn(join(bin, 'conformance'), args, { cwd: here, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.on('error', (error) => reject(new Error(`the conformance suite does not start, run setup.sh first (${error.message})`)));
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** The frozen list of a revision for `role` (server or client): scenarios that are required, and extras that run unscored. */
export async function requirements(role, revision) {
  const { code, stdout, stderr } = await conformance(['list', '--requirements', revision]);
  if (code !== 0) throw new Error(`conformance list failed: ${stderr}`);
  const required = [];
  const extra = [];
  let part = '';
  for (const line of stdout.split('\n')) {
    const heading = /^(Server|Client|Run and reported)\b.*:$/.exec(line);
    if (heading) part = heading[1].toLowerCase();
    const entry = /^ +- (\S+)(?: \[(\w+)\])?$/.exec(line);
    if (!entry) continue;
    if (part === role) required.push(entry[1]);
    else if (part === 'run and reported' && entry[2] === role) extra.push(entry[1]);
  }
  if (required.length === 0) throw new Error(`no ${role} scenario in the list of ${revision}: has its format changed?\n${stdout}`);
  return { required, extra };
}

/** A baseline's entries, `scenario` or `scenario:check`, and for each the comment above its group, which is the reason. Entries that
 *  end with `# by time` depend on how fast the machine is: they count as missed, and may pass.
 *  Only the plain list that we write is read; anything else is an error. */
export function readBaseline(file) {
  const entries = [];
  const reasons = [];
  const byTime = [];
  let role = null;
  let reason = '';
  let isOpen = false; // the comment may go on
  for (const [index, line] of readFileSync(file, 'utf8').trimEnd().split('\n').entries()) {
    const heading = /^(server|client):$/.exec(line);
    const comment = /^ *# (.+)$/.exec(line);
    const entry = /^ {2}- ([^\s:]+(?::[^\s:]+)?)( # by time)?$/.exec(line);
    if (comment) reason = isOpen ? `${reason} ${comment[1]}` : comment[1];
    else if (heading && role === null) role = heading[1];
    else if (entry && role !== null) reasons.push(reason) && entries.push(entry[1]);
    else if (line !== '') throw new Error(`${file}:${index + 1}: expected one "server:" or "client:" and then lines "  - NAME"`);
    if (entry?.[2]) byTime.push(entry[1]);
    isOpen = comment !== null;
    if (line === '' || heading) reason = '';
  }
  if (role === null) throw new Error(`${file}: neither "server:" nor "client:"`);
  const twice = entries.find((entry, index) => entries.indexOf(entry) !== index);
  if (twice) throw new Error(`${file}: ${twice} stands there twice`);
  const bare = entries.find((_, index) => reasons[index] === '');
  if (bare) throw new Error(`${file}: ${bare} has no reason: a comment above it`);
  return { role, entries, reasons, byTime };
}
