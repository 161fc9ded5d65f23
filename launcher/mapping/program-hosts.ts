/** The hosts of a job whose programs may have a -H each: all of them, and which of them a program may use. */
import { hostKey, type Hosts } from '../allocation/slots/add-up.ts';
import { allocateHosts } from '../allocation/allocate.ts';
import { parseHostList } from '../allocation/grammar/host-list.ts';
import { thisMachine, type LauncherMachine } from '../allocation/grammar/machine.ts';
import { Reading } from '../allocation/grammar/reading.ts';
import type { HostSlots, JobRequest } from '../model/types.ts';

/** Indexes of the allocation's hosts, and how many slots of each are the program's at most; null: as many as it has. */
type OwnHosts = ReadonlyMap<number, number | null>;

/** Null: any host. `taken`: ranks of the programs before, by host. Throws what allocate throws. */
export type HostsOfProgram = ((taken: readonly number[]) => OwnHosts) | null;

interface JobHosts {
  readonly allocation: Hosts;
  /** By program. */
  readonly hostsOf: readonly HostsOfProgram[];
}

/** Throws what allocate throws. */
export function allocateJob(request: JobRequest, machine = thisMachine): JobHosts {
  const { programs, hostfile } = request;
  if (programs.every(({ hostList }) => hostList === null)) {
    return { allocation: allocateHosts(request, machine), hostsOf: programs.map(() => null) };
  }
  const keyOf = (host: HostSlots): string => hostKey(host, machine);
  // Which hosts are empty is known only once the programs before have their ranks.
  const known = programs.map(({ hostList }) =>
    hostList === null || asksForEmpty(hostList, machine)
      ? null
      : allocateHosts({ ...request, hostList }, machine).hosts,
  );
  // What a hostfile defines is not added up, however many programs pick from it.
  const allocation = hostfile === null ? allocateHosts(request, machine) : pickedByAny(request, known, machine);
  const indexes = new Map(allocation.hosts.map((host, index) => [keyOf(host), index]));
  const owns = (hosts: readonly HostSlots[]): OwnHosts =>
    new Map(hosts.map((host) => [indexes.get(keyOf(host)) ?? -1, host.slots]));
  const hostsOf = programs.map(({ hostList }, program): HostsOfProgram => {
    const hosts = known[program] ?? null;
    if (hosts !== null) return () => owns(hosts);
    if (hostList === null) return null;
    return (taken) => {
      const used = allocation.hosts.filter((_, index) => taken[index] !== 0);
      return owns(allocateHosts({ ...request, hostList, occupied: new Set(used.map(keyOf)) }, machine).hosts);
    };
  });
  return { allocation, hostsOf };
}

/** The hostfile's hosts that are in one of `lists`, or all of them if one list is not known. */
function pickedByAny(
  request: JobRequest,
  lists: readonly (readonly HostSlots[] | null)[],
  machine: LauncherMachine,
): Hosts {
  const { hosts, leftOut } = allocateHosts({ ...request, hostList: null }, machine);
  const users = new Map(lists.flatMap((list) => list ?? []).map((host) => [hostKey(host, machine), host.user]));
  const all = hosts.map((host) => ({ ...host, user: users.get(hostKey(host, machine)) ?? host.user }));
  if (lists.includes(null)) return { hosts: all, leftOut };
  const isUsed = (host: HostSlots): boolean => users.has(hostKey(host, machine));
  const idle = all.filter((host) => !isUsed(host)).map(({ name }) => ({ name, reason: '-H does not name it' }));
  return { hosts: all.filter(isUsed), leftOut: [...leftOut, ...idle] };
}

function asksForEmpty(hostList: string, machine: LauncherMachine): boolean {
  const items = parseHostList(hostList, machine, new Reading());
  return items.some((item) => item.kind === 'relative' && item.which === 'empty');
}
