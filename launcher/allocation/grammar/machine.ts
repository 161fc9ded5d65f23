/** This machine as allocation sees it, and which names mean it. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { hostname, networkInterfaces, userInfo } from 'node:os';
import type { SourcePosition } from '../../model/failure.ts';
import { hostfileError } from './diagnostic.ts';
import { messageOf } from '../../../control/message-of.ts';

export interface LauncherMachine {
  readonly hostName: string;
  /** Whether an address or name is this machine's: of an interface, or of a line of /etc/hosts with its address. */
  isOwn(name: string): boolean;
  /** The user who runs us, or null where the system has no name for them. */
  userName(): string | null;
  /** A file's content, of `-` that of standard input. Throws what node:fs throws. */
  readFile(path: string): string;
}

/** 100,000 hosts need about 3 MB; something far larger is not a hostfile. */
const maximumBytes = 64 * 1024 * 1024;

export const thisMachine: LauncherMachine = {
  hostName: hostname(),
  isOwn: (name) => (ownNames ??= findOwnNames()).has(name),
  userName() {
    try {
      return userInfo().username;
    } catch {
      return null; // a container's user without an entry in /etc/passwd
    }
  },
  readFile(path) {
    const content = contents.get(path) ?? readLimited(path);
    contents.set(path, content);
    return content;
  },
};

let ownNames: ReadonlySet<string> | null = null;

/** In lower case. No name server is asked. */
function findOwnNames(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const names = new Set(all.map(({ address }) => address.toLowerCase()));
  for (const line of readOrEmpty('/etc/hosts').split('\n')) {
    const [address = '', ...aliases] = (line.split('#', 1)[0] ?? '').trim().toLowerCase().split(/\s+/u);
    if (names.has(address) || isLoopback(address)) for (const alias of aliases) names.add(alias);
  }
  return names;
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127(\.[0-9]{1,3}){3}$/u.test(address);
}

/** A pipe can be read only once, but several programs of a job may each pick from its hosts. */
const contents = new Map<string, string>();

/** Pipes work too (`--hostfile <(command)`); what never ends, such as /dev/zero, is given up. */
function readLimited(path: string): string {
  const file = path === '-' ? 0 : openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let total = 0; total <= maximumBytes; ) {
      const chunk = Buffer.allocUnsafe(65_536);
      const length = readSync(file, chunk);
      if (length === 0) return textOf(Buffer.concat(chunks));
      chunks.push(chunk.subarray(0, length));
      total += length;
    }
    throw new Error(`it has more than ${maximumBytes / 1024 / 1024} MiB, which no hostfile needs`);
  } finally {
    if (file !== 0) closeSync(file);
  }
}

/** As editors and shells of Windows write files. */
function textOf(bytes: Buffer): string {
  const [first, second] = bytes;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (isMarked || (bytes.length > 1 && (first === 0 || second === 0)))
    throw new Error('it is UTF-16, and hostfiles are UTF-8: iconv -f UTF-16 -t UTF-8 makes it so');
  return bytes.toString('utf8');
}

/** Throws a FailureError (hostfile) at `position` where the file cannot be read. */
export function readHosts(
  path: string,
  machine: LauncherMachine,
  position: SourcePosition | null,
  remedy: string,
): string {
  const name = path === '-' ? 'from standard input' : path;
  try {
    return machine.readFile(path);
  } catch (error) {
    throw hostfileError(`cannot read the hostfile ${name}: ${reasonOf(error)}`, position, remedy);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  EAGAIN: 'nothing is there to read yet',
  EBADF: 'it is closed',
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return reasons[code] ?? messageOf(error);
}

/** localhost, 127.*, ::1 and the host's own names and addresses, short or full; as another user it is a host like any other. */
export function isLocal(name: string, user: string | null, machine: LauncherMachine): boolean {
  if (user !== null && user !== machine.userName()) return false;
  const asked = name.toLowerCase();
  if (asked === 'localhost' || isLoopback(asked)) return true;
  const own = machine.hostName.toLowerCase();
  if (asked === own || machine.isOwn(asked)) return true;
  // One of the two without its domain: node1 and node1.cluster are one host, node1.a and node1.b are not.
  return asked.includes('.') !== own.includes('.') && shortName(asked) === shortName(own) && !/^[0-9.]+$/u.test(asked);
}

function shortName(name: string): string {
  return name.split('.', 1)[0] ?? name;
}
