/**
 * What the user said about hosts → the allocation. A resource manager, or else a hostfile, defines; what else there is of hostfile and -H
 * picks; --include and --exclude filter.
 */
import type { HostSlots, JobRequest, SimulatedHosts } from '../model/types.ts';
import { FailureError } from '../model/failure-error.ts';
import { addUp, type Hosts } from './slots/add-up.ts';
import { hostfileError } from './grammar/diagnostic.ts';
import type { HostEntry } from './grammar/entry.ts';
import { parseHostList, type ListItem } from './grammar/host-list.ts';
import { parseHostfile } from './grammar/hostfile.ts';
import { exclude, include } from './filter/include-exclude.ts';
import { readHosts, thisMachine, type LauncherMachine } from './grammar/machine.ts';
import { managedHosts } from './managed/hosts.ts';
import { managerTitles, type Manager } from './managed/manager.ts';
import { pick, withoutRelatives } from './slots/pick.ts';
import { maximumSlotsInAll, Reading } from './grammar/reading.ts';

export type AllocationRequest = Pick<JobRequest, 'hostfile' | 'hostList'> &
  Partial<Pick<JobRequest, 'include' | 'exclude' | 'manager' | 'simulated'>> & {
    /** Keys of hosts that +e passes over, since they have ranks of other programs. */
    readonly occupied?: ReadonlySet<string>;
  };

/** This machine, with as many slots as anybody wants. */
const localhost: HostSlots = {
  name: 'localhost',
  user: null,
  port: null,
  slots: null,
  maxSlots: null,
  devices: null,
  local: true,
  origin: {
    kind: 'localhost-unlimited',
    text: 'no hosts given: this machine, without a limit',
    host: 'no hosts given: this machine',
  },
};

/** Throws a FailureError (hostfile) with file, line and column of what is wrong. Reads hostfiles and nothing else. */
export function allocateHosts(request: AllocationRequest, machine = thisMachine): Hosts {
  const hosts = filter(define(request, machine), request, machine);
  if (hosts.hosts.length === 0) {
    throw hostfileError('no host is left to use', null, '-H, --include and --exclude together must leave one');
  }
  const sum = hosts.hosts.reduce((total, { slots }) => total + (slots ?? 0), 0);
  if (sum <= maximumSlotsInAll) return hosts;
  throw hostfileError(`the hosts have ${sum} slots in all`, null, `at most ${maximumSlotsInAll} are possible`);
}

function define(request: AllocationRequest, machine: LauncherMachine): Hosts {
  const { hostfile, hostList, manager = null, simulated = null, occupied = new Set() } = request;
  if (simulated !== null) return simulatedHosts(simulated);
  const listed = hostList === null ? null : parseHostList(hostList, machine, new Reading());
  if (manager !== null) return ofManager({ manager, hostfile, listed, occupied }, machine);
  if (hostfile === null) {
    if (listed === null) return { hosts: [localhost], leftOut: [] };
    const hosts = addUp(withoutRelatives(listed), machine);
    if (hosts.hosts.length > 0) return hosts;
    throw hostfileError(`-H ${hostList ?? ''} names no host to use`, null, 'write -H host1,host2:4');
  }
  const { file, entries } = readHostfile(hostfile, machine);
  const defined = addUp(entries, machine);
  if (defined.hosts.length === 0) throw emptyFile(file, entries);
  return listed === null ? defined : pick({ defined, items: listed, file, machine, occupied });
}

/** Each has its own share of this machine's GPUs. */
function simulatedHosts({ hosts, slots }: SimulatedHosts): Hosts {
  return {
    hosts: Array.from(
      { length: hosts },
      (_, index): HostSlots => ({
        name: `simulated-${index + 1}`,
        user: null,
        port: null,
        slots,
        maxSlots: null,
        devices: Array.from({ length: slots }, (_slot, slot) => index * slots + slot),
        local: false,
        simulated: true,
        origin: {
          kind: 'stated',
          text: `${slots} by --simulate-hosts ${hosts}`,
          host: `--simulate-hosts ${hosts}: this machine plays it`,
        },
      }),
    ),
    leftOut: [],
  };
}

interface Managed {
  readonly manager: Manager;
  readonly hostfile: string | null;
  readonly listed: readonly ListItem[] | null;
  readonly occupied: ReadonlySet<string>;
}

/** Hostfile and -H both pick: nothing beyond the allocation may be used. */
function ofManager({ manager, hostfile, listed, occupied }: Managed, machine: LauncherMachine): Hosts {
  const remedy = 'hosts beyond it cannot be used from inside of it; --resource-manager none leaves it out of account';
  const whole = { file: `the ${managerTitles[manager.name]} allocation`, machine, occupied, remedy };
  let defined = managedHosts(manager, machine);
  let file = whole.file;
  if (hostfile !== null) {
    const read = readHostfile(hostfile, machine);
    if (read.entries.length === 0) throw emptyFile(read.file, []);
    defined = pick({ ...whole, defined, items: read.entries });
    ({ file } = read);
  }
  return listed === null ? defined : pick({ ...whole, file, defined, items: listed });
}

function readHostfile(hostfile: string, machine: LauncherMachine): { file: string; entries: HostEntry[] } {
  const content = readHosts(hostfile, machine, null, 'check the name given to --hostfile');
  const isStdin = hostfile === '-';
  return {
    file: isStdin ? 'standard input' : hostfile,
    entries: parseHostfile(content, isStdin ? 'stdin' : hostfile),
  };
}

function emptyFile(file: string, entries: readonly HostEntry[]): Error {
  const excluded = entries.filter(({ kind }) => kind === 'exclude').map(({ name }) => name);
  const lines = 'write one host per line, such as: node1 slots=8';
  const remedy = excluded.length === 0 ? lines : `${lines}; --exclude ${excluded.join('@')} leaves hosts out of others`;
  return hostfileError(`${file} names no host to use`, null, remedy);
}

function filter(defined: Hosts, request: AllocationRequest, machine: LauncherMachine): Hosts {
  const [wanted, unwanted] = [request.include ?? null, request.exclude ?? null];
  if (wanted !== null && unwanted !== null) {
    throw new FailureError({
      type: 'usage',
      message: '--include and --exclude cannot be given together',
      remedy: 'name with --include what to use, or with --exclude what not',
    });
  }
  if (wanted !== null) return include(defined, wanted, machine);
  return unwanted === null ? defined : exclude(defined, unwanted, machine);
}
