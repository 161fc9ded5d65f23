/** What a table of measured times holds for: equal keys, equal times. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { RanksOfHosts } from '../../plan/possible.ts';
import type { DeviceName } from '../../plan/types.ts';

/** Of the tables, whatever version of ncclrun writes them: tables of another one are not found. */
export const FORMAT_VERSION = 1;

export interface TableKey {
  readonly device: DeviceName;
  readonly ranks: number;
  /** Hash of the model's paths between the ranks; null if the topology is unknown, and between hosts. */
  readonly topology: string | null;
  /** Name of the processors, and number of cores for ranks; null on GPUs. */
  readonly processor: string | null;
  readonly cores: number | null;
  /** Name of the GPUs and the driver's version; null on processors, or if unknown. */
  readonly gpu: string | null;
  readonly computeCapability: number | null;
  readonly driver: string | null;
  /** Absent: all ranks are on one host. */
  readonly between?: BetweenHosts;
}

/** Several hosts, and the network between them. */
export interface BetweenHosts {
  readonly hosts: number;
  /** Ranks of the hosts, in their order: `4x8 1x2` are four hosts of eight ranks and one of two. */
  readonly layout: string;
  /** Name of the network, of each host's NICs the number, and of the slowest one its Mbit/s; 0: unknown. */
  readonly network: string;
  readonly nics: number;
  readonly speedMbps: number;
  /** One machine plays all hosts. */
  readonly isOneMachine: boolean;
  readonly sockets: number;
  readonly socketThreads: number;
  /** reductionKey(); absent: the ranks alone reduce. */
  readonly reduction?: string;
}

export function hashOf(facts: unknown): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 16);
}

export function tablesBelow(cacheDirectory: string): string {
  return join(cacheDirectory, 'tuning');
}

export function tablePath(directory: string, key: TableKey): string {
  return join(directory, `${key.device}-${key.ranks}-${kindPart(key)}${hashOf([FORMAT_VERSION, inOrder(key)])}.json`);
}

/** Beginning and end of the names of tables of the same kind of hosts and network, whatever the number of hosts and ranks. */
export function isNameOfKind(name: string, key: TableKey): boolean {
  const kind = kindPart(key);
  return kind !== '' && name.startsWith(`${key.device}-`) && name.includes(`-${kind}`) && name.endsWith('.json');
}

/** Of several hosts: what does not change with their number. */
function kindPart(key: TableKey): string {
  if (key.between === undefined) return '';
  const { network, nics, speedMbps, isOneMachine, sockets, socketThreads } = key.between;
  const { processor, cores, gpu, computeCapability, driver } = key;
  const facts = [processor, cores, gpu, computeCapability, driver, network, nics, speedMbps, isOneMachine];
  return `${hashOf([...facts, sockets, socketThreads])}-`;
}

/** Also of a key whose fields came in another order. */
export function inOrder(key: TableKey): TableKey {
  const { device, ranks, topology, processor, cores, gpu, computeCapability, driver } = key;
  const own = { device, ranks, topology, processor, cores, gpu, computeCapability, driver };
  if (key.between === undefined) return own;
  const { hosts, layout, network, nics, speedMbps, isOneMachine, sockets, socketThreads, reduction } = key.between;
  const between = { hosts, layout, network, nics, speedMbps, isOneMachine, sockets, socketThreads };
  return { ...own, between: reduction === undefined ? between : { ...between, reduction } };
}

/** `counts`: ranks of each host. */
export function layoutOf(counts: readonly number[]): string {
  const runs: { count: number; hosts: number }[] = [];
  for (const count of counts) {
    const last = runs.at(-1);
    if (last?.count === count) last.hosts += 1;
    else runs.push({ count, hosts: 1 });
  }
  return runs.map(({ hosts, count }) => `${hosts}x${count}`).join(' ');
}

/** Reads a layout. */
export function countByLayout(layout: string): RanksOfHosts & { readonly ranks: number } {
  const runs = layout.split(' ').map((run) => run.split('x').map(Number));
  const hosts = runs.reduce((sum, [count = 0]) => sum + count, 0);
  const ranks = runs.reduce((sum, [count = 0, each = 0]) => sum + count * each, 0);
  const maxRanks = Math.max(...runs.map(([, each = 0]) => each));
  return { ranks, hosts, maxRanks, ranksOfEachHost: ranks === hosts * maxRanks ? maxRanks : 0 };
}
