/** Short and full names of one host: `node1` and `node1.cluster.local`. */
import type { HostSlots } from '../../model/types.ts';

/** The name that `hosts` has for the host called `name`: the same, else the one host of which either is the short name; `name` if there is none. */
export function nameAmong(name: string, hosts: readonly Pick<HostSlots, 'name'>[]): string {
  const wanted = name.toLowerCase();
  if (isAddress(wanted) || hosts.some((host) => host.name.toLowerCase() === wanted)) return name;
  const alike = hosts.filter((host) => {
    const known = host.name.toLowerCase();
    return !isAddress(known) && (known.startsWith(`${wanted}.`) || wanted.startsWith(`${known}.`));
  });
  return alike.length === 1 ? (alike[0]?.name ?? name) : name;
}

/** Dots separate other things there. */
function isAddress(name: string): boolean {
  return /^[0-9.]+$|:/u.test(name);
}
