/** In what the hosts of a job differ that should be alike. */
import { foldNames } from '../text/fold-names.ts';

export interface HostPreflight {
  readonly name: string;
  /** By what it is. */
  readonly facts: Readonly<Record<string, string>>;
  /** Milliseconds by which its clock is ahead of ours; negative: behind. */
  readonly clockAheadMs: number;
}

/** Less is a matter of how long a message takes. */
const CLOCK_MS = 2000;
/** Hosts named one by one. */
const MAX_NAMES = 4;

/** A sentence for each difference: "hosts differ in open files: 14 hosts: 1048576; node7: 1024". */
export function differences(hosts: readonly HostPreflight[]): string[] {
  const names = [...new Set(hosts.flatMap(({ facts }) => Object.keys(facts)))];
  const facts = names.flatMap((name) => {
    const values = new Map<string, HostPreflight[]>();
    for (const host of hosts) {
      const value = host.facts[name] ?? 'none';
      const alike = values.get(value);
      if (alike === undefined) values.set(value, [host]);
      else alike.push(host);
    }
    return values.size < 2 ? [] : [`hosts differ in ${name}: ${describe(values)}`];
  });
  return [...facts, ...clocks(hosts)];
}

/** The value that most hosts have first. */
function describe(values: ReadonlyMap<string, readonly HostPreflight[]>): string {
  const groups = [...values].toSorted(([, one], [, other]) => other.length - one.length);
  return groups.map(([value, hosts]) => `${hostsText(hosts)}: ${value}`).join('; ');
}

/** A few by name, many by their number. */
export function hostsText(hosts: readonly Pick<HostPreflight, 'name'>[]): string {
  const names = foldNames(hosts.map(({ name }) => name));
  return names.length > MAX_NAMES ? `${hosts.length} hosts` : names.join(', ');
}

function clocks(hosts: readonly HostPreflight[]): string[] {
  return hosts
    .filter(({ clockAheadMs }) => Math.abs(clockAheadMs) > CLOCK_MS)
    .map(({ name, clockAheadMs }) => {
      const seconds = Math.round(Math.abs(clockAheadMs) / 100) / 10;
      return `the clock of ${name} is ${seconds} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this host's`;
    });
}
