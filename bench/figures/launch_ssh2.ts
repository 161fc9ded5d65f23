import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { interleaved, launchMilliseconds, runCommand } from '../measure.ts';

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
  async *run({ programs, samples }) {
    for (const { hostCount, perHost, goal } of sizes) {
      await using cluster = await Cluster.start(hostCount);
      const hosts = cluster.hosts.map((host) => host.name);
      const ranks = perHost * hosts.length;
      const list = hosts.map((host) => `${host}:${perHost}`).join(',');
      const ours = [join(repository, 'bin/ncclrun'), '--rsh', 'ssh2', '-H', list, '-n', String(ranks)];
      const medians = await interleaved(
        [
          { name: 'ours', measure: () => launchMilliseconds([...ours, '/bin/true'], { cluster }) },
          ...programs.peers.map((peer) => ({
            name: peer.name,
            measure: () =>
              launchMilliseconds([...peer.launch(ranks, hosts, perHost), '/bin/true'], {
                environment: peer.environment,
                limitMs: 15_000,
                cluster,
              }),
          })),
        ],
        samples,
      );
      const { ours: mine = null, ...peers } = Object.fromEntries(medians);
      yield { what: `${hostCount} × ${perHost}`, unit: 'ms', ours: mine, peers, goal };
      if (hostCount > 4) await tellPhases([...ours, '--json', '/bin/true'], cluster);
    }
  },
};

/** Where the time of a large start goes, from the result of one more run. */
async function tellPhases(argv: readonly string[], cluster: Cluster): Promise<void> {
  const { stdout } = await runCommand(argv, { cluster });
  const phases = /"phases(?:Ms)?":\s*\{([^}]*)\}/.exec(stdout)?.[1] ?? '';
  process.stdout.write(`    ${phases.replaceAll('"', '').replaceAll(',', ' ').replaceAll(/\s+/g, ' ').trim()}\n`);
}
