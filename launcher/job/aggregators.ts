/** Starts the aggregators of a job (--collnet) on their hosts. */
import { counted } from '../text/counted.ts';
import type { JobAggregators } from '../../control/planner/input/network-reduction.ts';
import { randomBytes } from '../../control/random-bytes.ts';
import type { Host } from './host.ts';

const TOKEN_BYTES = 16;

interface HostToServe {
  readonly host: Host;
  /** Where other hosts reach it. */
  readonly address: string;
  /** Among those with ranks; null: it has none. */
  readonly index: number | null;
  /** Aggregators on it. */
  readonly count: number;
}

/** Null: there is none. `problem` receives a sentence about each host on which not all have started. */
export async function startAggregators(
  hosts: readonly HostToServe[],
  problem: (message: string) => void,
): Promise<JobAggregators | null> {
  const token = randomBytes(TOKEN_BYTES).toString('hex');
  const servers = await Promise.all(
    hosts.map(async ({ host, address, index, count }) => {
      const answer = await host.aggregate({ count, address, token });
      if (answer !== null && answer.problem !== null) problem(`${host.name}: no aggregator: ${answer.problem}`);
      const runsOn = { index, name: host.name, speedMbps: speedAt(host, address) };
      return (answer?.ports ?? []).map((port) => ({ address, port, runsOn }));
    }),
  );
  const found = servers.flat();
  return found.length === 0 ? null : { token, servers: found };
}

/** Of the NIC with that address; 0: unknown. */
function speedAt({ hello }: Host, address: string): number {
  return hello?.nics.find((nic) => nic.address === address)?.speedMbps ?? 0;
}

/** "2 aggregators: 10.0.0.5 port 4000, 10.0.0.6 port 4000" */
export function aggregatorsText({ servers }: JobAggregators): string {
  const places = servers.map(({ address, port }) => `${address} port ${port}`);
  return `${counted(servers.length, 'aggregator')}: ${places.join(', ')}`;
}
