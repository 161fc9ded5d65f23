/** Failures and texts of a mapping that is impossible. */
import { FailureError } from '../model/failure-error.ts';
import type { HostSlots } from '../model/types.ts';

/** Hosts listed in a message before the rest becomes a number. */
const shownHosts = 8;

export function refuse(message: string, remedy: string): FailureError {
  return new FailureError({ type: 'allocation', message, remedy });
}

/** `node1: 4, node2: 4 and 30 more hosts` */
export function slotTable(hosts: readonly HostSlots[], maximum: boolean): string {
  const shown = hosts
    .slice(0, shownHosts)
    .map((host) => `${host.name}: ${(maximum ? host.maxSlots : host.slots) ?? 'no limit'}`)
    .join(', ');
  return hosts.length > shownHosts ? `${shown} and ${hosts.length - shownHosts} more hosts` : shown;
}

/** The program as its user would recognise it. */
export function programName({ wish: { argv } }: { readonly wish: { readonly argv: readonly string[] } }): string {
  return argv[0] ?? 'a program';
}
