/** Mentions of hosts → hosts: the same host twice adds up, excluded hosts go. */
import type { HostSlots, SlotOrigin } from '../job/types.ts';
import { hostfileError } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { isLocal, type Machine } from './machine.ts';

/** Names that mean this machine share one key, so that `localhost` and its host name add up. */
export function hostKey(entry: Pick<HostEntry, 'name' | 'user'>, machine: Machine): string {
  return isLocal(entry.name, entry.user, machine) ? 'localhost' : entry.name.toLowerCase();
}

/** One host per distinct name, in the order of first mention. Throws a FailureError (hostfile) where mentions disagree. */
export function addUp(entries: readonly HostEntry[], machine: Machine): HostSlots[] {
  const excluded = new Set<string>();
  const mentions = new Map<string, HostEntry[]>();
  for (const entry of entries) {
    const key = hostKey(entry, machine);
    if (entry.kind === 'exclude') {
      excluded.add(key);
      continue;
    }
    const earlier = mentions.get(key);
    if (earlier === undefined) mentions.set(key, [entry]);
    else earlier.push(entry);
  }
  return Array.from(mentions)
    .filter(([key]) => !excluded.has(key))
    .map(([, group]) => merge(group, machine))
    .filter((host) => host !== null);
}

function merge(group: readonly HostEntry[], machine: Machine): HostSlots | null {
  const [first] = group;
  if (first === undefined) return null;
  const local = isLocal(first.name, first.user, machine);
  const slots = sumSlots(group);
  const maxSlots = sumMaxSlots(group);
  return {
    name: first.name,
    user: agreed(group, 'user', (entry) => entry.user) ?? null,
    port: agreed(group, 'port', (entry) => entry.port) ?? null,
    slots,
    maxSlots,
    devices: null,
    local,
    origin: originOf(group, slots, local && maxSlots === null),
  };
}

/** A host mentioned once without a count has as many slots as it turns out to have; mentioned again, each mention is one slot. */
function sumSlots(group: readonly HostEntry[]): number | null {
  if (group.length === 1) return group[0]?.slots ?? null;
  return group.reduce((sum, entry) => sum + (entry.slots ?? 1), 0);
}

function sumMaxSlots(group: readonly HostEntry[]): number | null {
  if (group.some((entry) => entry.maxSlots === null)) return null;
  return group.reduce((sum, entry) => sum + (entry.maxSlots ?? 0), 0);
}

/** The one value that the mentions state; undefined if none does. */
function agreed<Value>(
  group: readonly HostEntry[],
  what: string,
  pick: (entry: HostEntry) => Value | null,
): Value | undefined {
  let found: Value | undefined;
  for (const entry of group) {
    const value = pick(entry);
    if (value === null) continue;
    if (found !== undefined && found !== value) {
      const message = `${entry.name} has two ${what}s: ${String(found)} and ${String(value)}`;
      throw hostfileError(message, entry.position, `state one ${what} for the host`);
    }
    found = value;
  }
  return found;
}

function originOf(group: readonly HostEntry[], slots: number | null, unlimited: boolean): SlotOrigin {
  const places = group.map(({ position }) => `${position.source}:${position.line}`).join(', ');
  if (slots !== null) return { kind: 'stated', text: `stated at ${places}`, host: places };
  if (unlimited) return { kind: 'localhost-unlimited', text: 'localhost without a count has no limit', host: places };
  return {
    kind: 'detected',
    text: `no count at ${places}: as many as the host has GPUs, or cores if none`,
    host: places,
  };
}
