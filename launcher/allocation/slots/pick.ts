/** -H beside a hostfile picks from its hosts: by name, by place (+n0), or those not named (+e). */
import { nearest } from '../../text/nearest.ts';
import type { SourcePosition } from '../../model/failure.ts';
import type { HostSlots } from '../../model/types.ts';
import { addUp, hostKey, type Hosts, type LeftOutHost } from './add-up.ts';
import { hostfileError } from '../grammar/diagnostic.ts';
import { locate, type HostEntry } from '../grammar/entry.ts';
import type { ListItem, RelativeHost } from '../grammar/host-list.ts';
import type { LauncherMachine } from '../grammar/machine.ts';
import { namesAmong } from './same-host.ts';

interface Choice {
  /** What the hostfile `file` says. */
  readonly defined: Hosts;
  readonly items: readonly ListItem[];
  readonly file: string;
  readonly machine: LauncherMachine;
  /** Keys of hosts that have ranks of the programs before: +e passes them over. */
  readonly occupied: ReadonlySet<string>;
  /** What to do about a host that is not there; null: it can be added to the file. */
  readonly remedy?: string;
}

/** Throws a FailureError (hostfile) where -H wants what the hostfile does not have. */
export function pick(given: Choice): Hosts {
  const { defined, file, machine } = given;
  const nameOf = namesAmong(defined.hosts);
  const namesOf = namesByTarget(defined.hosts);
  const items = given.items.flatMap((item): ListItem[] => {
    if (item.kind === 'relative') return [item];
    const name = nameOf(item.name);
    return (namesOf.get(name.toLowerCase()) ?? [name]).map((one) => ({ ...item, name: one }));
  });
  const choice = { ...given, items };
  const byKey = new Map(defined.hosts.map((host) => [hostKey(host, machine), host]));
  const entries = resolve(choice);
  const positions = new Map(entries.toReversed().map((entry) => [hostKey(entry, machine), entry.position]));
  const onlyExcludes = entries.length > 0 && entries.every(({ kind }) => kind === 'exclude');
  const excluded = new Set(entries.filter(({ kind }) => kind === 'exclude').map((entry) => hostKey(entry, machine)));
  if (onlyExcludes) {
    const leftOut = defined.hosts.filter((host) => excluded.has(hostKey(host, machine)));
    return {
      hosts: defined.hosts.filter((host) => !excluded.has(hostKey(host, machine))),
      leftOut: [...defined.leftOut, ...leftOut.map(({ name }) => ({ name, reason: 'excluded at -H' }))],
    };
  }

  const picked = new Set<string>();
  const hosts = addUp(entries, machine).hosts.map((wanted) => {
    const key = hostKey(wanted, machine);
    const host = byKey.get(key);
    const position = positions.get(key) ?? null;
    if (host === undefined) {
      const guess = nearest(wanted.name, [...byKey.keys()].slice(0, 1000));
      const remedy = choice.remedy ?? `beside a hostfile, -H only picks from its hosts; add ${wanted.name} to ${file}`;
      const message = `${wanted.name} is not in ${file}`;
      throw hostfileError(message, position, guess === null ? remedy : `did you mean ${guess}? ${remedy}`);
    }
    picked.add(key);
    const user = agreedUser(host, wanted, position, file);
    const from = { ...host.origin, host: `${host.origin.host}; picked by ${position?.source ?? '-H'}` };
    if (wanted.slots === null) return { ...host, user, origin: from };
    if (host.slots !== null && wanted.slots > host.slots) {
      const message = `${position?.source ?? '-H'} wants ${wanted.slots} slots of ${host.name}, ${file} gives it ${host.slots}`;
      throw hostfileError(message, position, `lower the count, or raise slots in ${file}`);
    }
    const ofHow = host.slots === null ? '' : ` of ${host.slots}`;
    const text = `${wanted.slots}${ofHow} by -H`;
    return { ...host, user, slots: wanted.slots, origin: { ...from, kind: 'stated' as const, text } };
  });
  return { hosts, leftOut: [...defined.leftOut, ...notPicked(defined.hosts, picked, machine)] };
}

/** -H has no ports: a name means all hosts of that name, but one without a port alone. */
function namesByTarget(hosts: readonly HostSlots[]): ReadonlyMap<string, readonly string[]> {
  const plain = new Set(hosts.filter(({ target }) => target === undefined).map(({ name }) => name.toLowerCase()));
  const names = new Map<string, string[]>();
  for (const { name, target } of hosts) {
    const key = target?.toLowerCase();
    if (key !== undefined && !plain.has(key)) names.set(key, [...(names.get(key) ?? []), name]);
  }
  return names;
}

function agreedUser(host: HostSlots, wanted: HostSlots, position: SourcePosition | null, file: string): string | null {
  if (host.user === null || wanted.user === null || host.user === wanted.user) return wanted.user ?? host.user;
  const message = `-H says ${wanted.user}@${wanted.name}, ${file} says ${host.user}@${host.name}`;
  throw hostfileError(message, position, 'state one user for the host');
}

function notPicked(hosts: readonly HostSlots[], picked: ReadonlySet<string>, machine: LauncherMachine): LeftOutHost[] {
  return hosts
    .filter((host) => !picked.has(hostKey(host, machine)))
    .map(({ name }) => ({ name, reason: '-H does not name it' }));
}

/** Relative hosts become hosts of the hostfile. */
function resolve({ defined: { hosts: defined }, items, file, machine, occupied }: Choice): HostEntry[] {
  const named = new Set(occupied);
  for (const item of items) {
    const host = item.kind === 'relative' ? numbered(defined, item, file) : item;
    if (host !== null) named.add(hostKey(host, machine));
  }
  const empty = defined.filter((host) => !named.has(hostKey(host, machine)));
  return items.flatMap((item) => {
    if (item.kind !== 'relative') return [item];
    const host = numbered(defined, item, file);
    if (host !== null) return [entryOf(host, item, item.count)];
    const wanted = item.count ?? empty.length;
    if (wanted > empty.length || wanted === 0) {
      const left = empty.length === 0 ? 'none is' : `only ${empty.length} are`;
      const beyond = occupied.size === 0 ? 'beyond those named' : 'without ranks of the programs before';
      const message = `${item.count ?? 'some'} hosts ${beyond} are asked for, ${left} left in ${file}`;
      throw hostfileError(
        message,
        item.position,
        occupied.size === 0
          ? 'ask for fewer, or name fewer'
          : 'ask for fewer, or say with -n how many ranks each program gets',
      );
    }
    return empty.splice(0, wanted).map((one) => entryOf(one, item, null));
  });
}

function numbered(defined: readonly HostSlots[], item: RelativeHost, file: string): HostSlots | null {
  if (item.which === 'empty') return null;
  const host = defined[item.which];
  if (host !== undefined) return host;
  const message = `${locate(item.position)} asks for host number ${item.which}, ${file} has ${defined.length}`;
  throw hostfileError(message, item.position, `they count from +n0 to +n${defined.length - 1}`);
}

function entryOf({ name, user }: HostSlots, { position }: RelativeHost, slots: number | null): HostEntry {
  return { kind: 'use', name, user, port: null, slots, maxSlots: null, range: null, position };
}

/** Throws a FailureError (hostfile) for the first relative host: without a hostfile there is nothing to count. */
export function withoutRelatives(items: readonly ListItem[]): HostEntry[] {
  return items.map((item) => {
    if (item.kind !== 'relative') return item;
    const message = 'a relative host counts the hosts of a hostfile, and there is none';
    throw hostfileError(message, item.position, 'add --hostfile FILE, or write the name of the host');
  });
}
