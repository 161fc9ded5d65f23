/** What the user said about hosts → the allocation. A hostfile defines, -H beside it picks, --include and --exclude filter. */
import type { HostSlots, JobRequest } from '../job/types.ts';
import { FailureError } from '../job/failure-error.ts';
import { addUp, type Hosts } from './add-up.ts';
import { hostfileError } from './diagnostic.ts';
import { parseHostList } from './host-list.ts';
import { parseHostfile } from './hostfile.ts';
import { exclude, include } from './include-exclude.ts';
import { type Machine, readHosts, thisMachine } from './machine.ts';
import { pick, withoutRelatives } from './pick.ts';
import { maximumSlotsInAll, Reading } from './reading.ts';

export type AllocationRequest = Pick<JobRequest, 'hostfile' | 'hostList'> &
  Partial<Pick<JobRequest, 'include' | 'exclude'>> & {
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
export function allocate(request: AllocationRequest, machine = thisMachine): Hosts {
  const hosts = filter(define(request, machine), request, machine);
  if (hosts.hosts.length === 0) {
    throw hostfileError('no host is left to use', null, '-H, --include and --exclude together must leave one');
  }
  const sum = hosts.hosts.reduce((total, { slots }) => total + (slots ?? 0), 0);
  if (sum <= maximumSlotsInAll) return hosts;
  throw hostfileError(`the hosts have ${sum} slots in all`, null, `at most ${maximumSlotsInAll} are possible`);
}

function define({ hostfile, hostList, occupied = new Set() }: AllocationRequest, machine: Machine): Hosts {
  const listed = hostList === null ? null : parseHostList(hostList, machine, new Reading());
  if (hostfile === null) {
    if (listed === null) return { hosts: [localhost], leftOut: [] };
    const hosts = addUp(withoutRelatives(listed), machine);
    if (hosts.hosts.length > 0) return hosts;
    throw hostfileError(`-H ${hostList ?? ''} names no host to use`, null, 'write -H host1,host2:4');
  }
  const content = readHosts(hostfile, machine, null, 'check the name given to --hostfile');
  const file = hostfile === '-' ? 'standard input' : hostfile;
  const defined = addUp(parseHostfile(content, hostfile === '-' ? 'stdin' : hostfile), machine);
  if (defined.hosts.length === 0) {
    throw hostfileError(`${file} names no host to use`, null, 'write one host per line, such as: node1 slots=8');
  }
  return listed === null ? defined : pick({ defined, items: listed, file, machine, occupied });
}

function filter(defined: Hosts, request: AllocationRequest, machine: Machine): Hosts {
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
