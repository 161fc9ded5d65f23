/** Mentions of hosts → hosts: the same host twice adds up, excluded hosts go. */
import type { HostSlots } from '../../model/types.ts';
import { hostfileError } from '../grammar/diagnostic.ts';
import { locate, type HostEntry } from '../grammar/entry.ts';
import { isLocal, type LauncherMachine } from '../grammar/machine.ts';
import { maximumSlots } from '../grammar/number.ts';
import { slotOrigin } from './origin.ts';

/** A host that was named and is not used. */
export interface LeftOutHost {
  readonly name: string;
  readonly reason: string;
}

export interface Hosts {
  readonly hosts: readonly HostSlots[];
  readonly leftOut: readonly LeftOutHost[];
}

const LOCAL_KEY = 'localhost';
const SSH_PORT = 22;
/** No host has so many slots, and no service of the system such a port. */
const MIN_PORT = 1024;

function isPerhapsPort(count: number | null | undefined): count is number {
  return typeof count === 'number' && count >= MIN_PORT;
}

/** Names that mean this machine share one key, so that `localhost` and its host name add up. */
export function hostKey(entry: Pick<HostEntry, 'name' | 'user'>, machine: LauncherMachine): string {
  return isLocal(entry.name, entry.user, machine) ? LOCAL_KEY : entry.name.toLowerCase();
}

/** One host per distinct name, in the order of first mention. Throws a FailureError (hostfile) where mentions disagree. */
export function addUp(entries: readonly HostEntry[], machine: LauncherMachine): Hosts {
  const excluded = new Map<string, HostEntry>();
  const mentions = new Map<string, Mention[]>();
  for (const [at, entry] of entries.entries()) {
    const key = hostKey(entry, machine);
    if (entry.kind === 'exclude') {
      excluded.set(key, entry);
      continue;
    }
    const earlier = mentions.get(key);
    if (earlier === undefined) mentions.set(key, [{ at, entry }]);
    else earlier.push({ at, entry });
  }
  const hosts: HostSlots[] = [];
  const leftOut: LeftOutHost[] = [];
  for (const [key, group] of mentions) {
    const [first] = group;
    const by = excluded.get(key);
    if (first === undefined) continue;
    if (by === undefined) hosts.push(...hostsOf(group, isLocal(first.entry.name, first.entry.user, machine)));
    else leftOut.push({ name: first.entry.name, reason: `excluded at ${locate(by.position)}` });
  }
  return { hosts: hosts.toSorted((one, other) => firstMention(one) - firstMention(other)), leftOut };
}

function firstMention({ mentions }: HostSlots): number {
  return mentions?.[0] ?? 0;
}

/**
 * Several ports of one name are hosts of their own: containers, or a container and the machine it is on. A mention without a port is of the one that
 * the others state; of this machine, it is the machine itself.
 */
function hostsOf(group: readonly Mention[], isHere: boolean): HostSlots[] {
  const portOf = ({ entry: { port } }: Mention) => (isHere && port === SSH_PORT ? null : port);
  const byPort = Map.groupBy(group, portOf);
  const stated = [...byPort.keys()].filter((port) => port !== null);
  if (stated.length === 0 || (stated.length === 1 && !isHere)) return [merge(group, isHere)];
  return Array.from(byPort, ([port, own]): HostSlots => {
    const host = merge(own, isHere && port === null);
    return port === null || byPort.size === 1 ? host : { ...host, name: `${host.name}:${port}`, target: host.name };
  });
}

/** `at` counts mentions of any host from 0. */
interface Mention {
  readonly at: number;
  readonly entry: HostEntry;
}

/** `local`: this machine itself. */
function merge(mentions: readonly Mention[], local: boolean): HostSlots {
  const group = mentions.map(({ entry }) => entry);
  const perhapsPorts = group.flatMap(({ colonCount }) => (isPerhapsPort(colonCount) ? [colonCount] : []));
  const slots = sumSlots(group);
  const maxSlots = sumMaxSlots(group);
  return {
    name: group[0]?.name ?? '',
    user: agreed(group, 'user', (entry) => entry.user),
    port: agreed(group, 'port', (entry) => entry.port),
    slots,
    mentions: mentions.map(({ at }) => at),
    maxSlots,
    ...(perhapsPorts.length === 0 ? {} : { perhapsPorts }),
    devices: null,
    local,
    origin: slotOrigin(group, slots, local && slots === null && maxSlots === null),
  };
}

/** A host mentioned once without a count has as many slots as it turns out to have; mentioned again, each mention is one slot. */
function sumSlots(group: readonly HostEntry[]): number | null {
  if (group.length === 1) return group[0]?.slots ?? null;
  let sum = 0;
  for (const entry of group) {
    sum += entry.slots ?? 1;
    if (sum > maximumSlots) {
      const message = `with this mention ${entry.name} has ${sum} slots`;
      throw hostfileError(message, entry.position, `a host has at most ${maximumSlots}`);
    }
  }
  return sum;
}

function sumMaxSlots(group: readonly HostEntry[]): number | null {
  if (group.some((entry) => entry.maxSlots === null)) return null;
  return group.reduce((sum, entry) => sum + (entry.maxSlots ?? 0), 0);
}

/** The one value that the mentions state, or null. */
function agreed<Value>(
  group: readonly HostEntry[],
  what: string,
  pick: (entry: HostEntry) => Value | null,
): Value | null {
  let found: Value | null = null;
  for (const entry of group) {
    const value = pick(entry);
    if (value === null) continue;
    if (found !== null && found !== value) {
      const message = `${entry.name} has two ${what}s: ${String(found)} and ${String(value)}`;
      throw hostfileError(message, entry.position, `state one ${what} for the host`);
    }
    found = value;
  }
  return found;
}
