/** Short and full names of one host: `node1` and `node1.cluster.local`. */
import type { HostSlots } from '../../model/types.ts';

/** Returns a name's equal among those of `hosts`: the same, else the one host of which either is the short name; else the name itself. */
export function namesAmong(hosts: readonly Pick<HostSlots, 'name'>[]): (name: string) => string {
  const exact = new Set(hosts.map((host) => host.name.toLowerCase()));
  const byLabel = Map.groupBy(hosts, (host) => firstLabel(host.name.toLowerCase()));
  return (name) => {
    const wanted = name.toLowerCase();
    if (isAddress(wanted) || exact.has(wanted)) return name;
    const candidates = byLabel.get(firstLabel(wanted)) ?? [];
    const alike = candidates.filter((host) => {
      const known = host.name.toLowerCase();
      return !isAddress(known) && (known.startsWith(`${wanted}.`) || wanted.startsWith(`${known}.`));
    });
    return alike.length === 1 ? (alike[0]?.name ?? name) : name;
  };
}

function firstLabel(name: string): string {
  return name.split('.', 1)[0] ?? name;
}

/** Dots separate other things there. */
function isAddress(name: string): boolean {
  return /^[0-9.]+$|:/u.test(name);
}
