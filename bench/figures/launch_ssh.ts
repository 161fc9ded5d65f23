import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { interleaved, launchMilliseconds } from '../measure.ts';

/** `/bin/true` on four hosts reached by OpenSSH. */
export const launchSsh: Figure = {
  name: 'launch-ssh',
  title: '/bin/true on 4 hosts over the system’s ssh, whole command',
  unavailable: clusterUnavailable,
  async *run({ programs, samples }) {
    await using cluster = await Cluster.start(4);
    const hosts = cluster.hosts.map((host) => host.name);
    for (const perHost of [1, 4, 16]) {
      const ranks = perHost * hosts.length;
      const list = hosts.map((host) => `${host}:${perHost}`).join(',');
      const ours = [join(repository, 'bin/ncclrun'), '--rsh', 'openssh', '-H', list, '-n', String(ranks), '/bin/true'];
      const medians = await interleaved(
        [
          { name: 'ours', measure: () => launchMilliseconds(ours, { cluster }) },
          ...programs.peers.map((peer) => ({
            name: peer.name,
            measure: () =>
              launchMilliseconds([...peer.launch(ranks, hosts, perHost), '/bin/true'], {
                environment: peer.environment,
                limitMs: 5000,
                cluster,
              }),
          })),
        ],
        samples,
      );
      const { ours: mine = null, ...peers } = Object.fromEntries(medians);
      const goal = { kind: 'ratio', factor: 0.8, against: ['mpich'] } as const;
      yield { what: `4 × ${perHost}`, unit: 'ms', ours: mine, peers, goal };
    }
  },
};
