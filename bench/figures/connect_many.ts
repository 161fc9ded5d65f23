import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { medianOf, runCommand } from '../measure.ts';
import { launchOver } from './over_ssh.ts';

const HOSTS = 64;
const BOUND_MS = 1000;

/** The slowest rank's time from the plan to its last connection, as NCCL_DEBUG=INFO tells it. */
export const connectMany: Figure = {
  name: 'connect-64',
  title: `connections of a communicator of ${HOSTS} hosts, from the plan on, slowest rank`,
  unavailable: clusterUnavailable,
  async *run({ programs, samples }) {
    const program = await programs.initBarrier();
    await using cluster = await Cluster.start(HOSTS);
    const words = [...launchOver('auto', cluster, 1), '-x', 'NCCL_DEBUG=INFO', program];
    const ours = await medianOf(samples, async () => {
      const { status, stdout, stderr } = await runCommand(words, { cluster });
      const told = [...`${stdout}${stderr}`.matchAll(/: ready: .* connections ([\d.]+)/g)].map(([, ms]) => Number(ms));
      return status === 0 && told.length === HOSTS ? Math.max(...told) : null;
    });
    yield {
      what: `${HOSTS} × 1`,
      unit: 'ms',
      ours,
      peers: {},
      goal: { kind: 'at-most', bound: BOUND_MS },
    };
  },
};
