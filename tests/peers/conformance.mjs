// Runs the official conformance suite against us and judges the result, for `make conformance` and CI.
//
//   node conformance.mjs server URL REVISION BASELINE OUTDIR [--demand NAME,NAME…]
//   node conformance.mjs client REVISION BASELINE OUTDIR [--demand NAME,NAME…]      drives $TOOLSTEAD by conformance-client.sh
//
// One line per scenario, then `N passed, M failed`. Exits 1 when
//   - a required scenario has a failure or warning that is not in the baseline,
//   - an entry of the baseline no longer fails (the list may only shrink),
//   - a scenario passed without a single successful check, or with a client that did not come to its end (the suite lets both pass),
//   - an unscored scenario that --demand names does not pass; one that this revision does not have is named and passed over.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { conformance, readBaseline, requirements, revisions } from './suite.mjs';

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

/** Why a scenario does not count as passed: the names of its bad checks, or one sentence; empty when it passed. */
function faultsOf(scenario, result) {
  if (!result) return [{ text: 'did not run' }];
  const failing = result.checks.filter(bad);
  if (failing.length > 0) return failing.map((check) => ({ entry: `${scenario}:${check.id}`, text: `${check.id}: ${check.errorMessage ?? check.status}` }));
  if (!result.finished) return [{ text: 'the client did not come to its end, see stderr.txt' }];
  if (!result.checks.some((check) => check.status === 'SUCCESS')) return [{ text: 'passed without a single successful check' }];
  return [];
}

function print(mark, scenario, faults = []) {
  console.log(`${mark.padEnd(8)} ${scenario}`);
  for (const fault of faults) console.log(`         ${fault.text}`);
}

async function main() {
  const words = process.argv.slice(2);
  const flag = words.indexOf('--demand');
  const demanded = flag < 0 ? [] : words.splice(flag, 2)[1].split(',').filter(Boolean);
  const role = words.shift();
  const url = role === 'server' ? words.shift() : null;
  const [revision, baseline, outdir] = words;
  if (!['server', 'client'].includes(role) || !revisions.includes(revision) || !outdir || words.length > 3) {
    console.error('usage: conformance.mjs server URL REVISION BASELINE OUTDIR [--demand NAMES] | client REVISION BASELINE OUTDIR [--demand NAMES]');
    return 2;
  }
  if (role === 'client') {
    if (!process.env.TOOLSTEAD) throw new Error('TOOLSTEAD must hold the path of the toolstead binary');
    process.env.TOOLSTEAD = resolve(process.env.TOOLSTEAD); // conformance-client.sh works in another folder
  }

  const list = await requirements(role, revision);
  const expected = readBaseline(baseline);
  if (expected.role !== role) throw new Error(`${baseline} is a baseline for a ${expected.role}`);

  const elsewhere = demanded.length > 0 ? await Promise.all(revisions.map((other) => requirements(role, other))) : [];
  for (const name of demanded) {
    if (list.extra.includes(name)) continue;
    if (!elsewhere.some((other) => other.extra.includes(name))) throw new Error(`--demand ${name}: no unscored ${role} scenario of this name`);
    console.log(`(none)   ${name} is demanded, but not part of ${revision}`);
  }

  // A folder of its own, emptied first: a result of an earlier run must not be taken for one of this.
  const folder = resolve(outdir, `${basename(baseline, '.yaml')}.results`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const target = role === 'server' ? ['--url', url] : ['--command', './conformance-client.sh'];
  const run = await conformance([role, ...target, '--requirements', revision, '--expected-failures', resolve(baseline), '-o', folder]);
  const results = readResults(folder, role);

  let passed = 0;
  let failed = 0;
  const used = new Set(); // entries of the baseline that this run needed
  for (const scenario of list.required) {
    const faults = faultsOf(scenario, results.get(scenario));
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
    const faults = faultsOf(scenario, results.get(scenario));
    const isDemanded = demanded.includes(scenario);
    if (isDemanded && faults.length > 0) missed += 1;
    const verdict = faults.length === 0 ? 'passed' : isDemanded ? 'FAILED' : 'failed';
    print(verdict, `${scenario} (${isDemanded ? 'not scored, demanded' : 'not scored'})`, isDemanded ? faults : []);
  }

  const waived = list.required.length - passed - failed;
  console.log(`\n${role} ${revision}: ${passed} passed, ${failed} failed (${waived} of ${list.required.length} by the baseline, ${missed} demanded ones missed; results in ${folder})`);
  const good = failed + stale.length + missed === 0;
  if (good && run.code !== 0) {
    console.error(`the suite itself ended with ${run.code}:\n${run.stdout.slice(-3000)}\n${run.stderr.slice(-3000)}`);
    return 1;
  }
  return good ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error.message);
    process.exit(2);
  },
);
