/** `node1:2222`, in which a port may be meant: behind a colon stand slots. */
import type { HostSlots } from '../../model/types.ts';

/** A sentence, or null if there is no such count. */
export function perhapsPortsText(hosts: readonly Pick<HostSlots, 'name' | 'perhapsPorts'>[]): string | null {
  const all = hosts.flatMap(({ name, perhapsPorts = [] }) => perhapsPorts.map((count) => ({ name, count })));
  const [first] = all;
  if (first === undefined) return null;
  const { name, count } = first;
  const others = all.length === 1 ? ' means' : ` and ${all.length - 1} more mean`;
  return `${name}:${count}${others} ${all.length === 1 ? `${count} slots` : 'slots'}; a port is written in a hostfile: ${name} port=${count}`;
}
