import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { timesOver } from './over_ssh.ts';

/** `/bin/true` on four hosts reached by OpenSSH. */
export const launchSsh: Figure = {
  name: 'launch-ssh',
  title: '/bin/true on 4 hosts over the system’s ssh, whole command',
  unavailable: clusterUnavailable,
  async *run(context) {
    await using cluster = await Cluster.start(4);
    for (const perHost of [1, 4, 16]) {
      const times = await timesOver('openssh', cluster, perHost, 5000, context);
      const goal = { kind: 'ratio', factor: 0.8, against: ['mpich'] } as const;
      yield { what: `4 × ${perHost}`, unit: 'ms', ...times, goal };
    }
  },
};
