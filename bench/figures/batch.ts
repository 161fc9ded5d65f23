/** Short jobs of a batch on four hosts beside GNU parallel, which starts each by ssh. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import { BatchRig } from '../../test/rig/batch.ts';
import type { Figure } from '../figure.ts';
import { interleaved, launchMilliseconds } from '../measure.ts';

const HOSTS = 4;
const SLOTS = 4;
const LIMIT_MS = 180_000;

export const batch: Figure = {
  name: 'batch',
  title: 'jobs of /bin/true on 4 hosts × 4 slots, time per job',
  unavailable: () =>
    clusterUnavailable() ??
    (spawnSync('parallel', ['--version']).error === undefined ? null : 'there is no GNU parallel'),
  async *run({ samples }) {
    await using cluster = await Cluster.start(HOSTS);
    await using rig = await BatchRig.openShared();
    const names = cluster.hosts.map(({ name }) => name);
    for (const jobs of [16, 200]) {
      const file = join(rig.directory, `batch-${jobs}.yaml`);
      const job = `{ name: t, command: [/bin/true], array: 0-${jobs - 1}, working_dir: /, output: ${rig.directory}/out }`;
      writeFileSync(file, `version: 1\nname: bench\njobs:\n  - ${job}\n`);
      const hosts = names.map((name) => `${name}:${SLOTS}`).join(',');
      const ours = [join(repository, 'bin/ncclrun'), 'batch', file, '-q', '-H', hosts];
      const logins = names.map((name) => `${SLOTS}/${name}`).join(',');
      const theirs = ['sh', '-c', `seq ${jobs} | parallel --will-cite -S ${logins} -N0 /bin/true`];
      const environment = { XDG_STATE_HOME: rig.directory };
      const contestants = [
        { name: 'ours', measure: () => launchMilliseconds(ours, { cluster, environment, limitMs: LIMIT_MS }) },
        { name: 'parallel', measure: () => launchMilliseconds(theirs, { cluster, limitMs: LIMIT_MS }) },
      ];
      const medians = Object.fromEntries(await interleaved(contestants, Math.min(samples, 3)));
      const { ours: mine = null, parallel = null } = medians;
      const perJob = (whole: number | null) => (whole === null ? null : whole / jobs);
      const goal = { kind: 'ratio', factor: 1.5, against: ['parallel'] } as const;
      yield { what: `${jobs} jobs`, unit: 'ms', ours: perJob(mine), peers: { parallel: perJob(parallel) }, goal };
    }
  },
};
