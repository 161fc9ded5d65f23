/** --dry-run: what would happen, without starting anything. */
import { printableLine } from '../../control/printable.ts';
import type { LeftOutHost } from '../allocation/slots/add-up.ts';
import { perhapsPortsText } from '../allocation/slots/perhaps-ports.ts';
import { withDetectedSlots } from '../allocation/detected.ts';
import type { Allocation, HostSlots, JobRequest } from '../model/types.ts';
import { bindRanks, needsTopology } from '../mapping/bind.ts';
import { aggregatorHosts, namedAggregatorHosts } from '../mapping/aggregator-hosts.ts';
import { mapRanks } from '../mapping/map-ranks.ts';
import { allocateJob } from '../mapping/program-hosts.ts';
import { localHostFacts } from '../local/host.ts';
import { bindingText } from '../report/verbose-text.ts';
import { slotText } from './hosts-table.ts';
import { shellLine } from './normalise.ts';
import { ranksText } from '../text/counted.ts';

export interface DryRun {
  readonly schemaVersion: 1;
  /** The normalised command, word by word. */
  readonly command: readonly string[];
  readonly hosts: readonly HostSlots[];
  /** Hosts that were named and are not used, with the reason. */
  readonly leftOut: readonly LeftOutHost[];
  /** null: depends on what only the hosts know. */
  readonly ranks: readonly DryRank[] | null;
  /** Of --collnet; left out where there are none, or where only the hosts know. */
  readonly aggregators?: readonly { readonly host: string; readonly count: number }[];
}

interface DryRank {
  readonly rank: number;
  readonly host: string;
  readonly program: number;
  readonly localRank: number;
  readonly localSize: number;
  /** The CPUs that it is bound to; null where it is not, or where only its host knows. */
  readonly cpus: readonly number[] | null;
  readonly numa: number | null;
  readonly gpu: number | null;
}

/** Throws a FailureError (hostfile, allocation). */
export function dryRun(request: JobRequest, command: readonly string[]): DryRun {
  const { allocation, hostsOf } = allocateJob(request);
  const early = mapRanks(allocation, request, null, hostsOf);
  const here = early !== null && !needsTopology(request) ? null : whatIsHere(allocation);
  const map = early ?? (here === null ? null : mapRanks(here.allocation, request, here.topologies, hostsOf));
  const bindings = map === null || here === null ? [] : bindRanks(map, request, here.topologies);
  const ranks = map?.ranks.map(({ rank, host, program, localRank, localSize, ...dealt }): DryRank => {
    const { cpus, numa, gpu } = bindings[rank] ?? { cpus: [], ...dealt };
    const bound = cpus.length > 0 ? cpus : null;
    return { rank, host: map.hosts[host]?.name ?? '', program, localRank, localSize, cpus: bound, numa, gpu };
  });
  const named = namedAggregatorHosts(request, allocation);
  const serving = map === null ? [] : aggregatorHosts(request, allocation, named, map);
  const aggregators = serving.map(({ slots, count }) => ({ host: slots.name, count }));
  const hosts = map?.hosts ?? allocation.hosts;
  const names = new Set([...hosts, ...serving.map(({ slots }) => slots)].map(({ name }) => name));
  const idle = allocation.hosts.filter(({ name }) => !names.has(name));
  const leftOut = [...allocation.leftOut, ...idle.map(({ name }) => ({ name, reason: 'no rank is left for it' }))];
  const base = { schemaVersion: 1, command, hosts, leftOut, ranks: ranks ?? null } as const;
  return aggregators.length === 0 ? base : { ...base, aggregators };
}

/** What this machine has is known without starting anything. */
function whatIsHere(allocation: Allocation) {
  const facts = localHostFacts();
  const here = allocation.hosts.filter((host) => host.local).map(({ name }) => name);
  const { topology } = facts;
  return {
    allocation: withDetectedSlots(allocation, new Map(here.map((name) => [name, facts]))),
    topologies: new Map(topology === null ? [] : here.map((name) => [name, topology])),
  };
}

/** For people: the command, then a line per host; `explain`: where each host and its number of slots come from. */
export function dryRunText(dry: DryRun, explain: boolean): string {
  const lines = [`command  ${shellLine(dry.command)}`];
  const width = dry.hosts.reduce((widest, host) => Math.max(widest, host.name.length), 4);
  const ranksOf = new Map<string, number[]>();
  for (const { rank, host } of dry.ranks ?? []) {
    const list = ranksOf.get(host);
    if (list === undefined) ranksOf.set(host, [rank]);
    else list.push(rank);
  }
  for (const host of dry.hosts) {
    const ranks = ranksOf.get(host.name);
    const shown = ranks === undefined ? '' : `${ranksText(ranks)}   `;
    const why = explain ? '' : ` (${host.origin.text})`;
    lines.push(`host     ${host.name.padEnd(width)}   ${shown}${slotText(host)}${why}`);
    if (explain) lines.push(...whyLines(host, ''.padEnd(width)));
  }
  for (const { host, count } of dry.aggregators ?? []) {
    lines.push(`host     ${host.padEnd(width)}   ${count === 1 ? 'an aggregator' : `${count} aggregators`}`);
  }
  const ports = perhapsPortsText(dry.hosts);
  if (ports !== null) lines.push(`note     ${ports}`);
  if (explain) lines.push(...dry.leftOut.map(({ name, reason }) => `not used ${name.padEnd(width)}   ${reason}`));
  for (const { rank, host, cpus, numa, gpu } of dry.ranks ?? []) {
    if (cpus !== null) lines.push(`binding  ${bindingText({ rank, host, bound: true, cpus, numa, gpu })}`);
  }
  if (dry.ranks === null) {
    lines.push('ranks    not known yet: they depend on what the hosts have; state slots (host:4), or use -N');
  }
  return `${lines.map(printableLine).join('\n')}\n`;
}

function whyLines({ origin }: HostSlots, indent: string): string[] {
  return [`         ${indent}     host:  ${origin.host}`, `         ${indent}     slots: ${origin.text}`];
}
