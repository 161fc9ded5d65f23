/** What the agents get: the order that travels with their start, and each host's part of the rank map. */
import { UnplannableError } from '../../control/planner/input/check.ts';
import { whyVerbsAreUnwanted } from '../../control/planner/network/verbs-wanted.ts';
import { systemDirectory } from '../../control/system-text.ts';
import { resolve } from 'node:path';
import type { AgentOrder, OrderedProgram, OrderedRank, Placement } from '../../control/messages/link.ts';
import { makeUniqueId } from '../../control/rendezvous/unique-id.ts';
import { needsTopology, type Binding } from '../mapping/bind.ts';
import { mappedRanksByHost } from '../mapping/ranks-by-host.ts';
import { gpusOfTask } from '../mapping/task-gpus.ts';
import { processMapping } from './process-mapping.ts';
import type { HostSlots, JobRequest, MappedRank, ProgramRequest, RankMap } from '../model/types.ts';

/** Signs of life are sent this often, in both directions. */
export const HEARTBEAT_MS = 1000;
/** Silence longer than this ends the ranks of a host, on both sides of the link. */
export const LEASE_MS = 5000;

const OUTPUT_WINDOW_BYTES = 64 * 1024 * 1024;
const MAX_HOST_WINDOW_BYTES = 4 * 1024 * 1024;
const MIN_HOST_WINDOW_BYTES = 256 * 1024;

/** Output that one host may have under way to the reporters; all hosts together stay within OUTPUT_WINDOW_BYTES. */
export function outputWindow(hosts: number): number {
  const share = Math.floor(OUTPUT_WINDOW_BYTES / hosts);
  return Math.max(MIN_HOST_WINDOW_BYTES, Math.min(MAX_HOST_WINDOW_BYTES, share));
}

interface OrderFacts {
  readonly request: JobRequest;
  readonly jobId: string;
  readonly version: string;
  /** Where this installation lies. */
  readonly installation: string;
  readonly hostCount: number;
  /** Attempts before this one. */
  readonly epoch: number;
}

/** The order of one host but for its name and placement. */
export function commonOrder({ request, jobId, version, installation, hostCount, epoch }: OrderFacts) {
  const exported = exportedEnvironment(request.programs[0]?.exports ?? [], process.env);
  return {
    schemaVersion: 1,
    version,
    jobId,
    epoch,
    maxRestarts: request.maxRestarts,
    stays: false,
    uniqueId: makeUniqueId(jobId).toString('base64'),
    leaseMs: LEASE_MS,
    heartbeatMs: HEARTBEAT_MS,
    outputCredit: outputWindow(hostCount),
    plansLocally: request.planFile === null,
    installation,
    interfaces: exported['NCCL_SOCKET_IFNAME'] ?? null,
    addressFamily: exported['NCCL_SOCKET_FAMILY'] ?? null,
    verbs: wantsVerbs({ ...process.env, ...exported }),
    topology: needsTopology(request),
    hangAfterMs: request.onHang === 'ignore' ? 0 : Math.round(request.hangAfterSeconds * 1000),
    preload: request.engine === 'ncclrun',
    portRange: request.portRange,
    busyGpus: request.busyGpus,
    outerJob: outerJob(process.env['NCCLRUN_JOB_ID']),
  } as const satisfies Omit<AgentOrder, 'hostName' | 'placement'>;
}

/** Null where the variable does not have the id of a job. */
function outerJob(id: string | undefined): string | null {
  return id !== undefined && /^[0-9a-f]{1,64}$/u.test(id) ? id : null;
}

/** A variable that is wrong is refused where communicators are planned. */
function wantsVerbs(environment: NodeJS.ProcessEnv): boolean {
  try {
    return whyVerbsAreUnwanted(environment) === null;
  } catch (error) {
    if (error instanceof UnplannableError) return false;
    throw error;
  }
}

interface PlacementFacts {
  /** All of the job, in its order. */
  readonly programs: readonly OrderedProgram[];
  /** --isolate-gpus */
  readonly isolateGpus: boolean;
  readonly readsStdin: (rank: number) => boolean;
  /** Our stdin is a terminal. */
  readonly terminal: boolean;
  readonly mergeStderr: boolean;
  readonly pmi: JobRequest['pmi'];
}

/** By host index of the map. */
export function placementsOf(map: RankMap, facts: PlacementFacts, bindings: readonly Binding[] = []): Placement[] {
  const pmi = facts.pmi === 'pmi1' ? { pmi: processMapping(map.ranks.map(({ host }) => host)) } : {};
  const common = { hostCount: map.hosts.length, rankCount: map.ranks.length, programs: facts.programs, ...pmi };
  return mappedRanksByHost(map).map((ranks, hostIndex) => ({
    ...common,
    hostIndex,
    ranks: ranks
      .toSorted((one, other) => one.localRank - other.localRank)
      .map((rank) => orderedRank(rank, map, facts, bindings[rank.rank])),
  }));
}

function orderedRank(
  mapped: MappedRank,
  { hosts, ranks }: RankMap,
  facts: PlacementFacts,
  binding: Binding | undefined,
): OrderedRank {
  const { rank, host: index, program, gpu } = mapped;
  const host = hosts[index];
  const isStated = facts.programs[program]?.environment['CUDA_VISIBLE_DEVICES'] !== undefined;
  const ofTask = host === undefined || isStated ? null : gpusOfTask(mapped, host);
  return {
    rank,
    program,
    stdinPipe: facts.readsStdin(rank),
    interactive: ranks.length === 1 || (facts.terminal && facts.readsStdin(rank)),
    mergeStderr: facts.mergeStderr,
    cpus: binding?.cpus ?? [],
    gpu: gpu ?? ofTask?.[0] ?? null,
    visibleGpus: facts.isolateGpus ? ownGpu(binding) : (ofTask ?? host?.devices ?? null),
  };
}

function ownGpu(binding: Binding | undefined): number[] | null {
  return binding === undefined || binding.gpu === null ? null : [binding.gpu];
}

/** `ours`: the environment that -x takes values from. */
export function orderedProgram(
  { argv, workingDirectory, exports }: ProgramRequest,
  ours: Readonly<Record<string, string | undefined>>,
): OrderedProgram {
  return {
    argv,
    workingDirectory: resolve(systemDirectory(), workingDirectory ?? '.'),
    workingDirectoryGiven: workingDirectory !== null,
    environment: exportedEnvironment(exports, ours),
  };
}

/** -x: VAR takes our value, VAR=value states one, PFX* takes all of ours with that beginning. What we do not have is not passed. */
export function exportedEnvironment(
  exports: readonly string[],
  ours: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const item of exports) {
    const equals = item.indexOf('=');
    if (equals > 0) {
      result[item.slice(0, equals)] = item.slice(equals + 1);
    } else {
      const names = item.endsWith('*') ? Object.keys(ours).filter((name) => isMeant(item.slice(0, -1), name)) : [item];
      for (const name of names) {
        const value = ours[name];
        if (value !== undefined) result[name] = value;
      }
    }
  }
  return result;
}

/** `-x '*'` leaves out what describes this machine or this login: it would be wrong on another host. */
const OF_THIS_LOGIN = /^(_|HOST|HOSTNAME|PWD|OLDPWD|SHLVL|DISPLAY|XAUTHORITY|SSH_.*|XDG_.*|DBUS_.*|NCCLRUN_.*)$/u;

/** Whether `PREFIX*` takes a variable. */
function isMeant(prefix: string, name: string): boolean {
  return prefix === '' ? !OF_THIS_LOGIN.test(name) : name.startsWith(prefix);
}

/** Names given to -x that are not set here; a pattern may match nothing. */
export function missingExports(
  exports: readonly string[],
  ours: Readonly<Record<string, string | undefined>>,
): string[] {
  const missing = exports.filter((item) => !item.includes('=') && !item.endsWith('*') && ours[item] === undefined);
  return [...new Set(missing)];
}

/** Where other hosts may reach this one, best first: where ssh came in, and for our own host what the others see us as. */
export function hostAddresses(
  host: HostSlots,
  addresses: readonly string[],
  seenAs: string | null,
  alone: boolean,
): readonly string[] {
  if (alone) return ['127.0.0.1'];
  const all = [...new Set([...(host.local && seenAs !== null ? [seenAs] : []), ...addresses])];
  return all.length === 0 ? ['127.0.0.1'] : all;
}

/** Where a host's engines listen for those of others: at the address that these are given for it, and no other. */
export function listenerEnvironment(addresses: readonly string[], host: number): Record<string, string> {
  const address = addresses[host];
  return addresses.length < 2 || address === undefined ? {} : { NCCLRUN_HOST_ADDRESS: address };
}

/** Where torch and its like meet: a port that was free on rank 0's host. `hosts` in the map's order. */
export function masterEnvironment(
  map: RankMap,
  addresses: readonly string[],
  hosts: readonly { readonly hello: { readonly freePort: number } | null }[],
): Record<string, string> {
  const first = map.ranks[0]?.host ?? 0;
  return { MASTER_ADDR: addresses[first] ?? '127.0.0.1', MASTER_PORT: String(hosts[first]?.hello?.freePort ?? 0) };
}
