/**
 * node bench/batch/rate.ts [--hosts N] [--slots N] [--jobs N] [--runs N] [--json]: jobs per second of `ncclrun batch` with jobs of `true`, on the
 * test rig's hosts, which share this machine's processors with all that runs on them. The time is that of the whole command, its start included.
 * Needs what the rig needs: root, iproute2, OpenSSH.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { BatchRig } from '../../test/rig/batch.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import { Command } from '../../test/rig/command.ts';
import { median } from '../measure.ts';

const GOAL_PER_SECOND = 20;

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '4' },
    slots: { type: 'string', default: '4' },
    jobs: { type: 'string', default: '200' },
    runs: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const [hosts, slots, jobs, runs] = [values.hosts, values.slots, values.jobs, values.runs].map(Number);

/** Jobs per second of one batch. Throws unless each of its jobs has succeeded. */
async function rateOf(cluster: Cluster, hostList: string, count: number): Promise<number> {
  await using rig = await BatchRig.openShared();
  const file = rig.file(
    `version: 1\nname: rate\njobs:\n  - { name: t, command: [/bin/true], array: 0-${count - 1}, working_dir: / }\n`,
  );
  const environment = { XDG_STATE_HOME: rig.directory };
  const begin = performance.now();
  const { status, stderr } = await Command.run(['batch', file, '-H', hostList, '--quiet'], { cluster, environment });
  const seconds = (performance.now() - begin) / 1000;
  if (status !== 0) throw new Error(`the batch ended with status ${status}: ${stderr}`);
  return count / seconds;
}

await using cluster = await Cluster.start(hosts ?? 4);
const hostList = cluster.hosts.map(({ name }) => `${name}:${slots}`).join(',');
const rates: number[] = [];
for (let run = 0; run < (runs ?? 1); run += 1) rates.push(await rateOf(cluster, hostList, jobs ?? 1));
const perSecond = median(rates) ?? Number.NaN;

if (values.json) {
  process.stdout.write(`${JSON.stringify({ hosts, slots, jobs, rates, perSecond, goal: GOAL_PER_SECOND })}\n`);
} else {
  const all = rates.map((rate) => rate.toFixed(1)).join(', ');
  process.stdout.write(
    `${hosts} hosts of ${slots} slots, ${availableParallelism()} processors: ${jobs} jobs of true\n`,
  );
  process.stdout.write(`jobs per second: ${perSecond.toFixed(1)} (median of ${all}); goal ${GOAL_PER_SECOND}\n`);
}
