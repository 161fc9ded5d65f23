/** The plan that the engines of a job would get. */
import { gpuMemoryOf, gpuPlanOf } from '../../control/plan/gpu-memory.ts';
import type { GpuMemory } from '../../control/plan/gpu-memory.ts';
import { planToJson } from '../../control/plan/json.ts';
import type { CommPlan } from '../../control/plan/types.ts';
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

/** As --plan takes it. */
export function enginePlanText(cluster: Cluster, environment: Environment): string {
  return planToJson(enginePlan(cluster, environment));
}

function isOnGpus({ hosts }: Cluster, environment: Environment): boolean {
  return hosts.length === 1 && environment['NCCLRUN_DEVICE'] !== 'host';
}

/** Of each GPU, for one of a program's first communicators; null: not on GPUs. */
export function engineMemory(cluster: Cluster, environment: Environment): GpuMemory | null {
  const gpus = isOnGpus(cluster, environment) ? gpuPlanOf(enginePlan(cluster, environment)) : null;
  return gpus === null ? null : gpuMemoryOf(gpus);
}

/** Of one host on its GPUs, of several or with NCCLRUN_DEVICE=host on processors. Addresses and the token are filled in when a job starts. */
export function enginePlan(cluster: Cluster, environment: Environment): CommPlan {
  const onGpus = isOnGpus(cluster, environment);
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
    communicators: 0,
    pidHash: String(rank),
  }));
  return new Planner(null, environment).plan({ hosts, peers, token: '0'.repeat(32) }, true);
}
