/** --dry-run: what would happen, without starting anything. */
import { availableParallelism } from 'node:os';
import { allocate } from '../allocation/allocate.ts';
import { withDetectedSlots } from '../allocation/detected.ts';
import type { Allocation, HostSlots, JobRequest } from '../job/types.ts';
import { mapRanks } from '../mapping/map-ranks.ts';
import { shellLine } from './normalise.ts';

export interface DryRun {
  readonly schemaVersion: 1;
  /** The normalised command, word by word. */
  readonly command: readonly string[];
  readonly hosts: readonly HostSlots[];
  /** null: depends on slots that only the hosts know. */
  readonly ranks: readonly { rank: number; host: string; localRank: number; localSize: number }[] | null;
}

/** Throws a FailureError (hostfile, allocation). */
export function dryRun(request: JobRequest, command: readonly string[]): DryRun {
  const allocation = allocate(request);
  const map = mapRanks(allocation, request) ?? mapRanks(withLocalSlots(allocation), request);
  const ranks = map?.ranks.map(({ rank, host, localRank, localSize }) => ({
    rank,
    host: map.hosts[host]?.name ?? '',
    localRank,
    localSize,
  }));
  return { schemaVersion: 1, command, hosts: map?.hosts ?? allocation.hosts, ranks: ranks ?? null };
}

/** This machine's cores are known without starting anything; its GPUs are the agent's to count. */
function withLocalSlots(allocation: Allocation): Allocation {
  const facts = { cores: availableParallelism(), gpus: 0 };
  return withDetectedSlots(
    allocation,
    new Map(allocation.hosts.filter((host) => host.local).map((host) => [host.name, facts])),
  );
}

/** For people: the command, then a line per host. */
export function dryRunText(dry: DryRun): string {
  const lines = [`command  ${shellLine(dry.command)}`];
  const width = Math.max(...dry.hosts.map((host) => host.name.length), 4);
  const ranksOf = new Map<string, number[]>();
  for (const { rank, host } of dry.ranks ?? []) {
    const list = ranksOf.get(host);
    if (list === undefined) ranksOf.set(host, [rank]);
    else list.push(rank);
  }
  for (const host of dry.hosts) {
    const ranks = ranksOf.get(host.name);
    const shown = ranks === undefined ? '' : `${firstAndLast(ranks)}   `;
    lines.push(`host     ${host.name.padEnd(width)}   ${shown}${slotText(host)} (${host.origin.text})`);
  }
  if (dry.ranks === null) {
    lines.push('ranks    not known yet: they depend on what the hosts have; state slots (host:4), or use -N');
  }
  return `${lines.join('\n')}\n`;
}

function slotText(host: HostSlots): string {
  if (host.origin.kind === 'localhost-unlimited') return 'any number of slots';
  if (host.slots === null) return 'slots not known yet';
  return host.slots === 1 ? '1 slot' : `${host.slots} slots`;
}

function firstAndLast(ranks: readonly number[]): string {
  const [first] = ranks;
  return ranks.length > 1 ? `ranks ${first}-${ranks.at(-1)}` : `rank ${first}`;
}
