/** The plan that the engines of a job would get. */
import { UNKNOWN_HARDWARE } from '../../control/messages/hardware.ts';
import type { HostHardware } from '../../control/messages/hardware.ts';
import type { HostNic, HostVerbs, HostVerbsPort } from '../../control/messages/nic.ts';
import { gpuMemoryOf, gpuPlanOf } from '../../control/plan/gpu-memory.ts';
import type { PlannedGpuMemory } from '../../control/plan/gpu-memory.ts';
import { planToJson } from '../../control/plan/json.ts';
import type { CommPlan, TuningRow, WrittenPlan } from '../../control/plan/types.ts';
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import { NO_REDUCTION } from '../../control/planner/input/network-reduction.ts';
import type { AggregatorPlace, PlannedAggregators } from '../../control/planner/input/network-reduction.ts';
import type { HostTables, PlanInput, PlannedHost, PlannedPeer } from '../../control/planner/input/input.ts';
import type { Situation } from '../../control/planner/tuning/situation.ts';
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

/** What is known of the hosts that are planned for beside their topologies. */
export interface MeasuredHere {
  /** What was measured on this machine, if they are like it. */
  readonly tables: HostTables | null;
  /** Its GPUs' bus ids by rank. */
  readonly busIds: readonly string[];
  readonly host: KnownHost;
  /** Absent: none. */
  readonly aggregatorPlaces?: readonly AggregatorPlace[];
}

/** What every host has, as far as this machine tells. */
export interface KnownHost {
  /** One machine plays all hosts. */
  readonly isOneMachine: boolean;
  /** null: as many as it has ranks. */
  readonly cores: number | null;
  readonly hardware: HostHardware;
  /** The one that others reach it by first. */
  readonly nics: readonly HostNic[];
  /** null: nobody asked for them. */
  readonly verbs: HostVerbs | null;
}
export const UNKNOWN_HOST: KnownHost = {
  isOneMachine: false,
  cores: null,
  hardware: UNKNOWN_HARDWARE,
  nics: [],
  verbs: null,
};

/** Hosts of one subnet per NIC, of which `index` counts from 0. */
export function plannedHost(
  index: number,
  { isOneMachine, cores, hardware, nics, verbs }: KnownHost,
  ranks: number,
): Omit<PlannedHost, 'machine' | 'tables'> {
  const number = isOneMachine ? 1 : index + 1;
  const addressOn = (rail: number): string => `10.${rail}.${number >> 8}.${number & 255}`;
  return {
    name: `host${index}`,
    address: addressOn(0),
    cores: cores ?? ranks,
    hardware,
    nics: nics.map((nic, rail) => ({ ...nic, address: addressOn(rail), prefixLength: 16 })),
    verbs:
      verbs === null || isOneMachine ? verbs : { ...verbs, ports: verbs.ports.map((port) => onHost(port, number)) },
  };
}

/** Its GIDs as another host would have them: equal ones are those of one machine. */
function onHost(port: HostVerbsPort, host: number): HostVerbsPort {
  const other = (gid: string): string =>
    gid.includes('.')
      ? gid.replace(/[^.]+\.[^.]+$/u, `${host >> 8}.${host & 255}`)
      : gid.replace(/[^:]*$/u, host.toString(16));
  return { ...port, gids: port.gids.map((one) => ({ ...one, gid: other(one.gid) })) };
}

/** As --plan takes it: without the NICs, and what follows from them, which are filled in when a job starts. */
export function enginePlanText(cluster: Cluster, environment: Environment, here: MeasuredHere): string {
  const plan = enginePlan(cluster, environment, here);
  return planToJson({ ...plan, ...withoutNetwork(plan) });
}

/** What is filled in when a job starts. */
export function withoutNetwork(plan: CommPlan): Pick<WrittenPlan, 'hosts' | 'peers' | 'channels' | 'network'> {
  return {
    hosts: plan.hosts.map((host) => ({ ...host, address: '127.0.0.1', nics: [], gpuNics: [] })),
    peers: plan.peers.map((peer) => ({ ...peer, pairNic: null })),
    channels: plan.channels.map((channel) => ({ ...channel, rail: null })),
    network: null,
  };
}

/** Of more ranks, what a job would get takes too long to work out. */
const MAX_RANKS = 1024;

/** Of each GPU, for one of a program's first communicators; null: not on GPUs, or of a very large job. */
export function engineMemory(cluster: Cluster, environment: Environment, here: MeasuredHere): PlannedGpuMemory | null {
  const isWanted = isOnGpus(environment) && cluster.ranks <= MAX_RANKS;
  const gpus = isWanted ? gpuPlanOf(enginePlan(cluster, environment, here)) : null;
  return gpus === null ? null : gpuMemoryOf(gpus);
}

/** The variants that engines take by size, where the network reduces; null: it does not, or the job is very large. */
export function engineTuning(
  cluster: Cluster,
  environment: Environment,
  here: MeasuredHere & { readonly situation: Situation },
): readonly TuningRow[] | null {
  const { reduction } = here.situation.between ?? { reduction: NO_REDUCTION };
  return reduction.by !== 'none' && cluster.ranks <= MAX_RANKS ? enginePlan(cluster, environment, here).tuning : null;
}

/** On the hosts' GPUs, or with NCCLRUN_DEVICE=host on processors. Addresses and the token are filled in when a job starts. */
function enginePlan(cluster: Cluster, environment: Environment, here: MeasuredHere): CommPlan {
  return new Planner(null, environment).plan(inputOf(cluster, environment, here), true);
}

function isOnGpus(environment: Environment): boolean {
  return environment['NCCLRUN_DEVICE'] !== 'host';
}

export function inputOf(
  cluster: Cluster,
  environment: Environment,
  { tables, busIds, host: known, aggregatorPlaces = [] }: MeasuredHere,
): PlanInput {
  const onGpus = isOnGpus(environment);
  const hosts = cluster.hosts.map(({ shape, ranks }, host) => ({
    ...plannedHost(host, known, ranks.length),
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
  return { hosts, peers, aggregators: aggregatorsAt(aggregatorPlaces), token: NO_TOKEN };
}

/** Addresses, ports and the token are filled in when a job starts. */
export function aggregatorsAt(places: readonly AggregatorPlace[]): PlannedAggregators | null {
  if (places.length === 0) return null;
  return { token: NO_TOKEN, servers: places.map((runsOn) => ({ address: '127.0.0.1', port: 1, runsOn })) };
}

/** Of ranks on processors of hosts like this machine, of which no topology says anything. The first hosts have one more where they do not come out even. */
export function processorsInput(
  ranks: number,
  hostCount: number,
  known: KnownHost,
  tables: HostTables | null,
): PlanInput {
  const perHost = Array.from(
    { length: hostCount },
    (_, host) => Math.floor(ranks / hostCount) + (host < ranks % hostCount ? 1 : 0),
  );
  const hosts = perHost.map((count, host) => ({ ...plannedHost(host, known, count), machine: null, tables }));
  const hostOf = perHost.flatMap((count, host) => Array.from({ length: count }, () => host));
  return { hosts, peers: hostOf.map((host, rank) => peer(rank, host, hostCount)), token: NO_TOKEN };
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
