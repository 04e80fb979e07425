// Checks every baseline: no name that the suite does not know (the suite itself would not notice one), and no more entries than the
// number committed in baseline/sizes.json, so that the lists can only shrink. Exits 1 and names each fault.
//
//   node check_baseline.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { here, readBaseline, requirements, revisions } from './suite.mjs';

const folder = join(here, 'baseline');
const sizes = JSON.parse(readFileSync(join(folder, 'sizes.json'), 'utf8'));
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const faults = Object.keys(sizes)
  .filter((name) => !files.includes(name))
  .map((name) => `sizes.json names ${name}, which does not exist`);

for (const name of files) {
  const revision = revisions.find((candidate) => name.endsWith(`.${candidate}.yaml`));
  if (!revision) {
    faults.push(`${name}: its name must end in .REVISION.yaml`);
    continue;
  }
  let baseline;
  try {
    baseline = readBaseline(join(folder, name));
  } catch (error) {
    faults.push(error.message);
    continue;
  }
  const { role, entries } = baseline;
  const { required } = await requirements(role, revision);
  for (const entry of entries) {
    const scenario = entry.split(':')[0];
    if (!required.includes(scenario)) faults.push(`${name}: ${scenario} is no required ${role} scenario of ${revision}`);
  }
  if (!(name in sizes)) faults.push(`${name}: sizes.json has no number for it`);
  else if (entries.length > sizes[name]) faults.push(`${name}: ${entries.length} entries, only ${sizes[name]} are committed; it may only shrink`);
  else if (entries.length < sizes[name]) console.log(`${name}: shrunk to ${entries.length}, lower its number in sizes.json`);
}

for (const fault of faults) console.error(fault);
console.log(`${files.length} baselines checked, ${faults.length} faults`);
process.exit(faults.length > 0 ? 1 : 0);
