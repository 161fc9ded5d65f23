/** Binds ranks to CPUs and GPUs. A pure function of the hosts' topologies. */
import type { Core, HostTopology } from '../../control/messages/topology.ts';
import type { HostSlots, JobRequest, MappedRank, RankMap } from '../model/types.ts';
import { dealsToObjects, type MappingRequest, type Topologies } from './map-ranks.ts';
import { counted } from '../text/counted.ts';
import { refuse } from './refusal.ts';
import { gpusOfTask } from './task-gpus.ts';

export interface Binding {
  /** Empty: wherever its host lets the job run. */
  readonly cpus: readonly number[];
  /** Its NUMA node, if it keeps to one. */
  readonly numa: number | null;
  /** As CUDA numbers them on the host; null where there is none. */
  readonly gpu: number | null;
}

type BindingRequest = Pick<JobRequest, 'bindTo' | 'oversubscribe'>;

/** True if the launcher needs the hosts' topologies before it can start ranks. */
export function needsTopology(
  request: MappingRequest & Pick<JobRequest, 'bindTo' | 'reportBindings' | 'isolateGpus'>,
): boolean {
  return request.bindTo !== 'none' || request.reportBindings || request.isolateGpus || dealsToObjects(request);
}

/** By rank. Throws a FailureError (allocation) where a host has too few cores or no GPU for what is asked. */
export function bindRanks(map: RankMap, request: BindingRequest, topologies: Topologies): Binding[] {
  const used = map.hosts.map(() => new Set<Core>());
  return map.ranks.map((rank) => {
    const host = map.hosts[rank.host];
    const topology = topologies.get(host?.name ?? '');
    if (host === undefined || topology === undefined) return { cpus: [], numa: rank.numa, gpu: rank.gpu };
    const gpu = gpuOf(rank, host, topology);
    const cpus = cpusOf({ rank, host, topology, gpu, used: used[rank.host] ?? new Set() }, request);
    return { cpus, numa: numaOf(cpus, topology), gpu };
  });
}

interface Bound {
  readonly rank: MappedRank;
  readonly host: HostSlots;
  readonly topology: HostTopology;
  readonly gpu: number | null;
  /** Cores of the host that ranks have for themselves. */
  readonly used: Set<Core>;
}

/** The one it was dealt to, else by local rank among those that the allocation names. */
function gpuOf(rank: MappedRank, host: HostSlots, { gpus }: HostTopology): number | null {
  const { gpu, localRank } = rank;
  if (gpu !== null || gpus.length === 0) return gpu;
  const [own] = gpusOfTask(rank, host) ?? [];
  if (own !== undefined && own < gpus.length) return own;
  const usable = host.devices?.filter((device) => device < gpus.length) ?? [];
  return usable.length > 0 ? (usable[localRank % usable.length] ?? null) : localRank % gpus.length;
}

function cpusOf(bound: Bound, { bindTo, oversubscribe }: BindingRequest): readonly number[] {
  switch (bindTo) {
    case 'none':
      return [];
    case 'core':
      return ownCore(bound, oversubscribe).cpus;
    case 'numa':
      return allOf(coresOfNuma(bound));
    case 'gpu':
      return allOf(coresOfGpu(bound));
    default:
      return bindTo satisfies never;
  }
}

/** The next free core near what the rank was dealt to. With --oversubscribe ranks share when all are taken. */
function ownCore(bound: Bound, oversubscribe: boolean): Core {
  const { rank, host, topology, used } = bound;
  const near = rank.gpu !== null ? coresOfGpu(bound) : rank.numa !== null ? coresOfNuma(bound) : topology.cores;
  const free = near.find((core) => !used.has(core)) ?? (oversubscribe ? near[rank.localRank % near.length] : undefined);
  if (free !== undefined) {
    used.add(free);
    return free;
  }
  const where =
    near === topology.cores ? '' : rank.gpu !== null ? ` near GPU ${rank.gpu}` : ` of NUMA node ${rank.numa}`;
  const message = `rank ${rank.rank} finds no core${where} on ${host.name} for itself: ${counted(near.length, 'core')} may be used and all have a rank`;
  throw refuse(
    message,
    'start fewer ranks, bind them to less (--bind-to numa, none), or let them share with --oversubscribe',
  );
}

/** Of the NUMA node that the rank was dealt to; else neighbouring local ranks share one. */
function coresOfNuma({ rank, topology: { cores } }: Bound): readonly Core[] {
  const nodes = [...new Set(cores.map((core) => core.numa))].toSorted((one, other) => one - other);
  const node = rank.numa ?? nodes[Math.floor((rank.localRank * nodes.length) / rank.localSize)];
  const own = cores.filter((core) => core.numa === node);
  return own.length > 0 ? own : cores;
}

/** Cores that the host reports as near the GPU; else those of its NUMA node; else all. */
function coresOfGpu({ host, topology, gpu }: Bound): readonly Core[] {
  if (gpu === null) throw refuse(`${host.name} has no GPU to bind ranks to`, 'use --bind-to core, numa or none there');
  const { cores, gpus } = topology;
  const near = cores.filter((core) => core.cpus.some((cpu) => gpus[gpu]?.cpus.includes(cpu)));
  if (near.length > 0) return near;
  const own = cores.filter((core) => core.numa === gpus[gpu]?.numa);
  return own.length > 0 ? own : cores;
}

function allOf(cores: readonly Core[]): number[] {
  return cores.flatMap((core) => core.cpus).toSorted((one, other) => one - other);
}

function numaOf(cpus: readonly number[], { cores }: HostTopology): number | null {
  const own = new Set(cpus);
  const nodes = new Set(cores.filter((core) => core.cpus.some((cpu) => own.has(cpu))).map((core) => core.numa));
  const [node] = nodes;
  return nodes.size === 1 ? (node ?? null) : null;
}

/** The binding for reports; for an unbound rank the CPUs that it may use. */
export function reportedBinding({ cpus, numa, gpu }: Binding, host: string, topologies: Topologies) {
  const bound = cpus.length > 0;
  return { host, bound, cpus: bound ? cpus : allOf(topologies.get(host)?.cores ?? []), numa: bound ? numa : null, gpu };
}
