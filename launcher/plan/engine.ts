/** The plan that the engines of a job would get, as --plan takes it. */
import { planToJson } from '../../control/plan/json.ts';
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { Environment } from '../../control/planner/variables.ts';

/** By compute capability, of the generation's usual GPU. */
const MULTIPROCESSORS: readonly (readonly [from: number, count: number])[] = [
  [100, 148],
  [90, 132],
  [80, 108],
  [0, 80],
];

/** Of one host on its GPUs, of several or with NCCLRUN_DEVICE=host on processors. Addresses and the token are filled in when a job starts. */
export function enginePlan(cluster: Cluster, environment: Environment): string {
  const onGpus = cluster.hosts.length === 1 && environment['NCCLRUN_DEVICE'] !== 'host';
  const hosts = cluster.hosts.map(({ shape, ranks }, host) => ({
    name: `host${host}`,
    address: '127.0.0.1',
    cores: ranks.length,
    machine: { key: String(shape), shape: () => cluster.shapes[shape] ?? null },
  }));
  const capability = Math.min(
    ...cluster.shapes.flatMap(({ routes }) => routes.machine.gpus.map(({ computeCapability }) => computeCapability)),
  );
  const multiprocessors = MULTIPROCESSORS.find(([from]) => capability >= from)?.[1] ?? 0;
  const peers = Array.from({ length: cluster.ranks }, (_, rank) => ({
    host: cluster.hostOf(rank),
    listenPort: cluster.hosts.length > 1 ? 1 : 0,
    device: onGpus ? ('cuda' as const) : ('host' as const),
    cudaDevice: 0,
    busId: rank.toString(16),
    multiprocessors,
    mostChannels: 0,
    pidHash: String(rank),
  }));
  return planToJson(new Planner(null, environment).plan({ hosts, peers, token: '0'.repeat(32) }, true));
}
