/** What the user said about hosts → the allocation. A hostfile defines, -H beside it filters. */
import type { Allocation, HostSlots, JobRequest } from '../job/types.ts';
import { addUp, hostKey } from './add-up.ts';
import { hostfileError } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseHostList } from './host-list.ts';
import { parseHostfile } from './hostfile.ts';
import { type Machine, thisMachine } from './machine.ts';

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
    host: 'no hosts given',
  },
};

/** Throws a FailureError (hostfile) with file, line and column of what is wrong. Reads the hostfile and nothing else. */
export function allocate(request: Pick<JobRequest, 'hostfile' | 'hostList'>, machine = thisMachine): Allocation {
  const listed = request.hostList === null ? null : parseHostList(request.hostList);
  if (request.hostfile === null) return { hosts: listed === null ? [localhost] : addUp(listed, machine) };

  const defined = addUp(readHostfile(request.hostfile, machine), machine);
  if (defined.length === 0) {
    const remedy = 'write one host per line, such as: node1 slots=8';
    throw hostfileError(`${request.hostfile} names no host to use`, null, remedy);
  }
  return { hosts: listed === null ? defined : filter(defined, listed, request.hostfile, machine) };
}

function readHostfile(path: string, machine: Machine): HostEntry[] {
  let content: string;
  try {
    content = machine.readFile(path);
  } catch (error) {
    throw hostfileError(
      `cannot read the hostfile ${path}: ${reasonOf(error)}`,
      null,
      'check the name given to --hostfile',
    );
  }
  return parseHostfile(content, path);
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'EISDIR') return 'it is a directory';
  return error instanceof Error ? error.message : String(error);
}

/** The hosts of -H in its order; a count there takes that many of the hostfile's slots. */
function filter(
  defined: readonly HostSlots[],
  listed: readonly HostEntry[],
  file: string,
  machine: Machine,
): HostSlots[] {
  const byKey = new Map(defined.map((host) => [hostKey(host, machine), host]));
  return addUp(listed, machine).map((wanted) => {
    const key = hostKey(wanted, machine);
    const host = byKey.get(key);
    const position = listed.find((entry) => hostKey(entry, machine) === key)?.position ?? null;
    if (host === undefined) {
      const remedy = `beside a hostfile, -H only picks from its hosts; add ${wanted.name} to ${file}`;
      throw hostfileError(`${wanted.name} is not in ${file}`, position, remedy);
    }
    if (wanted.slots === null) return host;
    if (host.slots !== null && wanted.slots > host.slots) {
      const message = `-H wants ${wanted.slots} slots of ${host.name}, ${file} gives it ${host.slots}`;
      throw hostfileError(message, position, `lower the count, or raise slots in ${file}`);
    }
    return { ...host, slots: wanted.slots, origin: wanted.origin };
  });
}
