import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { runCommand } from '../measure.ts';
import { launchOver, timesOver } from './over_ssh.ts';

/** Hosts and ranks on each; who sets the goal there. */
const sizes = [
  { hostCount: 4, perHost: 1, goal: { kind: 'ratio', factor: 0.7, against: ['mpich'] } },
  { hostCount: 4, perHost: 4, goal: { kind: 'ratio', factor: 0.7, against: ['mpich'] } },
  { hostCount: 4, perHost: 16, goal: { kind: 'ratio', factor: 0.7, against: ['mpich'] } },
  { hostCount: 32, perHost: 1, goal: { kind: 'ratio', factor: 1, against: ['openmpi'] } },
] as const;

/** `/bin/true` on hosts reached by our own ssh. */
export const launchSsh2: Figure = {
  name: 'launch-ssh2',
  title: '/bin/true on hosts reached by our own ssh, whole command',
  unavailable: clusterUnavailable,
  async *run(context) {
    for (const { hostCount, perHost, goal } of sizes) {
      await using cluster = await Cluster.start(hostCount);
      const times = await timesOver('ssh2', cluster, perHost, 15_000, context);
      yield { what: `${hostCount} × ${perHost}`, unit: 'ms', ...times, goal };
      if (hostCount > 4) await tellPhases([...launchOver('ssh2', cluster, perHost), '--json', '/bin/true'], cluster);
    }
  },
};

/** Where the time of a large start goes, from the result of one more run. */
async function tellPhases(argv: readonly string[], cluster: Cluster): Promise<void> {
  const { stdout } = await runCommand(argv, { cluster });
  const phases = /"phases(?:Ms)?":\s*\{([^}]*)\}/.exec(stdout)?.[1] ?? '';
  process.stdout.write(`    ${phases.replaceAll('"', '').replaceAll(',', ' ').replaceAll(/\s+/g, ' ').trim()}\n`);
}
