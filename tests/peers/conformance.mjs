// Runs the official conformance suite against us and judges the result, for `make conformance` and CI.
//
//   node conformance.mjs direct URL REVISION OUTDIR                      the fixture alone: every required scenario must pass
//   node conformance.mjs server URL REVISION BASELINE OUTDIR [--direct DIR] [--demand NAME,NAME…]
//   node conformance.mjs client REVISION BASELINE OUTDIR [--demand NAME,NAME…]      drives $TOOLSTEAD by conformance-client.sh
//
// --direct names the OUTDIR of a direct run of the fixture that stands behind us: what counts is each check that succeeded there,
// and where the suite notes what it got, the same must come through us.
// One line per scenario, then `N passed, M failed`. Exits 1 when
//   - a required scenario has a failure or a warning, or lost a check that succeeds directly, and the baseline does not name it,
//   - an entry of the baseline no longer fails (the list may only shrink),
//   - a scenario passed without a single successful check, or with a client that did not come to its end (the suite lets both pass),
//   - an unscored scenario that --demand names does not pass; one that this revision does not have is named and passed over.
// The suite is not told of the baseline: it knows nothing of a check that was merely not made.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { conformance, readBaseline, requirements, revisions } from './suite.mjs';

// How long a scenario may take: the suite starts all clients at once, and they share the machine with other tests.
const PATIENCE_MS = '300000';

const bad = (check) => check.status === 'FAILURE' || check.status === 'WARNING';

/** The checks of every scenario that ran, from the folders `[server-]SCENARIO-TIME` that the suite leaves (a name may hold a slash). */
function readResults(folder, role) {
  const results = new Map();
  for (const path of readdirSync(folder, { recursive: true }).filter((name) => basename(name) === 'checks.json')) {
    const run = dirname(path).replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    const scenario = role === 'server' ? run.replace(/^server-/, '') : run;
    const stdout = join(folder, dirname(path), 'stdout.txt');
    const finished = role === 'server' || (existsSync(stdout) && readFileSync(stdout, 'utf8').trimEnd().endsWith('client finished'));
    results.set(scenario, { checks: JSON.parse(readFileSync(join(folder, path), 'utf8')), finished });
  }
  return results;
}

/** By id, the first of the checks that succeeded each time that they were made. INFO tells of another way that is allowed as well. */
function succeeded({ checks }, orInfo = false) {
  const failing = new Set(checks.filter(bad).map((check) => check.id));
  const good = checks.filter((check) => !failing.has(check.id) && (check.status === 'SUCCESS' || (orInfo && check.status === 'INFO')));
  return new Map(good.reverse().map((check) => [check.id, check]));
}

const whole = ['content', 'contents', 'messages', 'completion', 'structuredContent', 'isError', 'mimeType', 'resourceUri', 'schema'];
const lists = ['tools', 'prompts', 'resources'];

/** What a check noted of an answer, and says otherwise than the direct one; a list may hold more. */
function differences(direct, here) {
  const members = ({ details }) => ({ ...details, ...details?.result });
  const [there, ours] = [members(direct), members(here)];
  const lost = lists.filter((name) => Array.isArray(there[name]) && !there[name].every((entry) => ours[name]?.includes(entry)));
  const changed = whole.filter((name) => name in there && !isDeepStrictEqual(there[name], ours[name]));
  return [...lost, ...changed].map((name) => `${name} is other than directly: ${JSON.stringify(ours[name])?.slice(0, 200)}`);
}

/** Why a scenario does not count as passed: the names of its bad and its lost checks, or one sentence; empty when it passed. */
function faultsOf(scenario, result, direct) {
  if (!result) return [{ text: 'did not run' }];
  const told = new Map(result.checks.filter(bad).map((check) => [check.id, check.errorMessage ?? check.status]));
  const here = succeeded(result, true);
  for (const [id, check] of direct ? succeeded(direct) : []) {
    if (told.has(id)) continue;
    const other = here.has(id) ? differences(check, here.get(id)) : ['succeeds directly, and was not made here'];
    if (other.length > 0) told.set(id, other.join('; '));
  }
  const faults = [...told].map(([id, text]) => ({ entry: `${scenario}:${id}`, text: `${id}: ${text}` }));
  if (faults.length > 0) return faults;
  if (!result.finished) return [{ text: 'the client did not come to its end, see stderr.txt' }];
  if (succeeded(result).size === 0) return [{ text: 'passed without a single successful check' }];
  return [];
}

function print(mark, scenario, faults = []) {
  console.log(`${mark.padEnd(8)} ${scenario}`);
  for (const fault of faults) console.log(`         ${fault.text}`);
}

/** Takes `--NAME VALUE` out of the words. */
function option(words, name) {
  const at = words.indexOf(`--${name}`);
  return at < 0 ? undefined : words.splice(at, 2)[1];
}

/** Runs the suite into a folder of its own, emptied first: a result of an earlier run must not be taken for one of this. */
async function run(role, url, revision, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const target = role === 'server' ? ['--url', url] : ['--command', './conformance-client.sh'];
  await conformance([role, ...target, '--requirements', revision, '--timeout', PATIENCE_MS, '-o', folder]);
  return readResults(folder, role);
}

/** The fixture alone, by which all others are measured. */
async function judgeDirectly(url, revision, folder) {
  const { required } = await requirements('server', revision);
  const results = await run('server', url, revision, folder);
  const failed = required.filter((scenario) => {
    const faults = faultsOf(scenario, results.get(scenario));
    if (faults.length > 0) print('FAILED', scenario, faults);
    return faults.length > 0;
  });
  console.log(`\ndirect ${revision}: ${required.length - failed.length} of ${required.length} passed (results in ${folder})`);
  return failed.length > 0 ? 1 : 0;
}

async function main() {
  const words = process.argv.slice(2);
  const demanded = option(words, 'demand')?.split(',').filter(Boolean) ?? [];
  const directly = option(words, 'direct');
  const role = words.shift();
  const url = role === 'client' ? null : words.shift();
  if (role === 'direct' && revisions.includes(words[0]) && words.length === 2) return judgeDirectly(url, words[0], resolve(words[1]));
  const [revision, baseline, outdir] = words;
  if (!['server', 'client'].includes(role) || !revisions.includes(revision) || !outdir || words.length > 3) {
    console.error('usage: see the first lines of conformance.mjs');
    return 2;
  }
  if (role === 'client') {
    if (!process.env.TOOLSTEAD) throw new Error('TOOLSTEAD must hold the path of the toolstead binary');
    process.env.TOOLSTEAD = resolve(process.env.TOOLSTEAD); // conformance-client.sh works in another folder
  }

  const list = await requirements(role, revision);
  const expected = readBaseline(baseline);
  if (expected.role !== role) throw new Error(`${baseline} is a baseline for a ${expected.role}`);
  const direct = directly ? readResults(resolve(directly), role) : new Map();

  const elsewhere = demanded.length > 0 ? await Promise.all(revisions.map((other) => requirements(role, other))) : [];
  for (const name of demanded) {
    if (list.extra.includes(name)) continue;
    if (!elsewhere.some((other) => other.extra.includes(name))) throw new Error(`--demand ${name}: no unscored ${role} scenario of this name`);
    console.log(`(none)   ${name} is demanded, but not part of ${revision}`);
  }

  const folder = resolve(outdir);
  const results = await run(role, url, revision, folder);

  let passed = 0;
  let failed = 0;
  const used = new Set(expected.byTime); // entries of the baseline that this run needed, or another one may
  for (const scenario of list.required) {
    const faults = faultsOf(scenario, results.get(scenario), direct.get(scenario));
    if (expected.entries.includes(scenario)) {
      if (faults.some((fault) => fault.entry)) used.add(scenario);
      print(used.has(scenario) ? 'expected' : 'STALE', scenario);
      continue;
    }
    for (const fault of faults) if (expected.entries.includes(fault.entry)) used.add(fault.entry);
    const unexpected = faults.filter((fault) => !used.has(fault.entry));
    if (unexpected.length > 0) failed += 1;
    else if (faults.length === 0) passed += 1;
    print(unexpected.length > 0 ? 'FAILED' : faults.length > 0 ? 'expected' : 'passed', scenario, unexpected);
  }

  const stale = expected.entries.filter((entry) => !used.has(entry));
  for (const entry of stale) console.log(`STALE    ${entry} does not fail any more: take it out of ${basename(baseline)} and lower sizes.json`);

  let missed = 0;
  for (const scenario of list.extra) {
    const faults = faultsOf(scenario, results.get(scenario), direct.get(scenario));
    const isDemanded = demanded.includes(scenario);
    if (isDemanded && faults.length > 0) missed += 1;
    const verdict = faults.length === 0 ? 'passed' : isDemanded ? 'FAILED' : 'failed';
    print(verdict, `${scenario} (${isDemanded ? 'not scored, demanded' : 'not scored'})`, isDemanded ? faults : []);
  }

  const waived = list.required.length - passed - failed;
  console.log(`\n${role} ${revision}: ${passed} passed, ${failed} failed (${waived} of ${list.required.length} by the baseline, ${missed} demanded ones missed; results in ${folder})`);
  return failed + stale.length + missed === 0 ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error.message);
    process.exit(2);
  },
);
