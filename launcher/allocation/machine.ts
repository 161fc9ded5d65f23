/** This machine as allocation sees it, and which names mean it. */
import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';

export interface Machine {
  readonly hostName: string;
  /** The user who runs us, or null where the system has no name for them. */
  userName(): string | null;
  /** Throws what node:fs throws. */
  readFile(path: string): string;
}

export const thisMachine: Machine = {
  hostName: hostname(),
  userName() {
    try {
      return userInfo().username;
    } catch {
      return null; // a container's user without an entry in /etc/passwd
    }
  },
  readFile: (path) => readFileSync(path, 'utf8'),
};

/** localhost, 127.*, ::1 and the host's own name, short or full; as another user it is a host like any other. */
export function isLocal(name: string, user: string | null, machine: Machine): boolean {
  if (user !== null && user !== machine.userName()) return false;
  const asked = name.toLowerCase();
  if (asked === 'localhost' || asked === '::1' || /^127(\.[0-9]{1,3}){3}$/u.test(asked)) return true;
  const own = machine.hostName.toLowerCase();
  if (asked === own) return true;
  // One of the two without its domain: node1 and node1.cluster are one host, node1.a and node1.b are not.
  return asked.includes('.') !== own.includes('.') && shortName(asked) === shortName(own) && !/^[0-9.]+$/u.test(asked);
}

function shortName(name: string): string {
  return name.split('.', 1)[0] ?? name;
}
