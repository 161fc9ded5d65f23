/** Which hosts a program with a -H of its own may use. */
import { hostKey } from '../allocation/add-up.ts';
import { allocate } from '../allocation/allocate.ts';
import { thisMachine } from '../allocation/machine.ts';
import type { Allocation, JobRequest } from '../job/types.ts';

/** By program: indexes of the allocation's hosts, or null for all. Throws what allocate throws. */
export function hostsOfPrograms(
  request: JobRequest,
  { hosts }: Allocation,
  machine = thisMachine,
): (ReadonlySet<number> | null)[] {
  return request.programs.map(({ hostList }) => {
    if (hostList === null) return null;
    const own = new Set(allocate({ ...request, hostList }, machine).hosts.map((host) => hostKey(host, machine)));
    return new Set(hosts.flatMap((host, index) => (own.has(hostKey(host, machine)) ? [index] : [])));
  });
}
