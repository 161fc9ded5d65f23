/** The plan that the engines of a job would get. */
import { gpuMemoryOf, gpuPlanOf } from '../../control/plan/gpu-memory.ts';
import type { PlannedGpuMemory } from '../../control/plan/gpu-memory.ts';
import { planToJson } from '../../control/plan/json.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import type { HostTables, PlanInput, PlannedPeer } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { Environment } from '../../control/planner/input/variables.ts';

/** By compute capability, of the generation's usual GPU. */
const SM_COUNTS: readonly (readonly [from: number, count: number])[] = [
  [100, 148],
  [90, 132],
  [80, 108],
  [0, 80],
];

const NO_TOKEN = '0'.repeat(32);

/** What was measured on the machine that is planned for, and its GPUs' bus ids by rank. */
export interface MeasuredHere {
  readonly tables: HostTables | null;
  readonly busIds: readonly string[];
}

/** As --plan takes it: without the NICs, and what follows from them, which are filled in when a job starts. */
export function enginePlanText(cluster: Cluster, environment: Environment, here: MeasuredHere): string {
  const plan = enginePlan(cluster, environment, here);
  return planToJson({
    ...plan,
    hosts: plan.hosts.map((host) => ({ ...host, nics: [] })),
    peers: plan.peers.map((peer) => ({ ...peer, pairNic: null })),
    channels: plan.channels.map((channel) => ({ ...channel, rail: null })),
    network: null,
  });
}

/** Of more ranks, what a job would get takes too long to work out. */
const MAX_RANKS = 1024;

/** Of each GPU, for one of a program's first communicators; null: not on GPUs, or of a very large job. */
export function engineMemory(cluster: Cluster, environment: Environment, here: MeasuredHere): PlannedGpuMemory | null {
  const isWanted = isOnGpus(environment) && cluster.ranks <= MAX_RANKS;
  const gpus = isWanted ? gpuPlanOf(enginePlan(cluster, environment, here)) : null;
  return gpus === null ? null : gpuMemoryOf(gpus);
}

/** On the hosts' GPUs, or with NCCLRUN_DEVICE=host on processors. Addresses and the token are filled in when a job starts. */
function enginePlan(cluster: Cluster, environment: Environment, here: MeasuredHere): CommPlan {
  return new Planner(null, environment).plan(inputOf(cluster, environment, here), true);
}

function isOnGpus(environment: Environment): boolean {
  return environment['NCCLRUN_DEVICE'] !== 'host';
}

export function inputOf(cluster: Cluster, environment: Environment, { tables, busIds }: MeasuredHere): PlanInput {
  const onGpus = isOnGpus(environment);
  const hosts = cluster.hosts.map(({ shape, ranks }, host) => ({
    name: `host${host}`,
    address: '127.0.0.1',
    cores: ranks.length,
    machine: { key: String(shape), shape: () => cluster.shapes[shape] ?? null },
    tables,
  }));
  const capability = Math.min(
    ...cluster.shapes.flatMap(({ routes }) => routes.machine.gpus.map(({ computeCapability }) => computeCapability)),
  );
  const smCount = SM_COUNTS.find(([from]) => capability >= from)?.[1] ?? 0;
  const peers = Array.from({ length: cluster.ranks }, (_, rank) => ({
    ...peer(rank, cluster.hostOf(rank), cluster.hosts.length),
    device: onGpus ? ('cuda' as const) : ('host' as const),
    busId: busIds[rank] ?? rank.toString(16),
    smCount,
  }));
  return { hosts, peers, token: NO_TOKEN };
}

/** Of ranks on this machine's processors, of which no topology says anything. */
export function processorsPlan(
  ranks: number,
  cores: number,
  environment: Environment,
  tables: HostTables | null,
): CommPlan {
  const hosts = [{ name: 'host0', address: '127.0.0.1', cores, machine: null, tables }];
  const peers = Array.from({ length: ranks }, (_, rank) => peer(rank, 0, 1));
  return new Planner(null, environment).plan({ hosts, peers, token: NO_TOKEN }, true);
}

function peer(rank: number, host: number, hosts: number): PlannedPeer {
  return {
    host,
    listenPort: hosts > 1 ? 1 : 0,
    device: 'host',
    cudaDevice: 0,
    busId: '0',
    smCount: 0,
    maxChannels: 0,
    communicators: 0,
    pidHash: String(rank),
  };
}
