import { parseResult } from '../../test/rig/result.ts';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { runCommand } from '../measure.ts';
import { launchOver, timesOver } from './over_ssh.ts';

const HOSTS = 64;
/** Open MPI 4.1.4 does not come back from some starts of ranks that end at once. */
const LIMIT_MS = 30_000;

/** `/bin/true` on 64 hosts of this machine, whose sshds and agents share its cores. */
export const launchMany: Figure = {
  name: 'launch-64',
  title: '/bin/true on 64 hosts over ssh, whole command',
  unavailable: clusterUnavailable,
  async *run(context) {
    await using cluster = await Cluster.start(HOSTS);
    for (const perHost of [1, 4]) {
      const times = await timesOver('auto', cluster, perHost, LIMIT_MS, context);
      const goal = { kind: 'ratio', factor: 1, against: ['openmpi'] } as const;
      yield { what: `${HOSTS} × ${perHost}`, unit: 'ms', ...times, goal };
      const { stdout } = await runCommand([...launchOver('auto', cluster, perHost), '--json', '/bin/true'], {
        cluster,
      });
      const phases = Object.entries(parseResult(stdout).phases).map(([phase, ms]) => `${phase} ${Math.round(ms)}`);
      process.stdout.write(`    one more, in ms: ${phases.join(', ')}\n`);
    }
  },
};
