/**
 * The processes of this machine, nested pid namespaces included, as /proc shows them. Orphans are adopted by an init that may reap late:
 * "gone" is no entry, or state Z without another thread (a process whose first thread has ended has state Z, too), and kill(pid, 0) would lie.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** One letter of /proc/PID/stat: R, S, D, T, Z… */
  readonly state: string;
  readonly threads: number;
  readonly argv: readonly string[];
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null; // ended meanwhile
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // ended meanwhile
  }
}

/** Null if there is no such process. */
export function processEntry(pid: number): ProcessEntry | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = '?', parent] = fields;
  const argv = (read(`/proc/${pid}/cmdline`) ?? '').split('\0').slice(0, -1);
  return { pid, parent: Number(parent), state, threads: Number(fields[17]), argv };
}

function lives({ state, threads }: ProcessEntry): boolean {
  return (state !== 'Z' && state !== 'X') || threads > 1;
}

/** @throws if no process was found: number 0 would mean the test runner's own group */
export function signalFound(found: { readonly pid: number } | null | undefined, signal: NodeJS.Signals): void {
  if (found === null || found === undefined) throw new Error(`no process to send ${signal} to`);
  process.kill(found.pid, signal);
}

export function alive(pid: number): boolean {
  const entry = processEntry(pid);
  return entry !== null && lives(entry);
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Living processes whose environment at their start had this NAME=value. */
export function withEnvironment(assignment: string): ProcessEntry[] {
  return living((pid) => environment(pid).includes(assignment));
}

/** Living processes one of whose arguments contains `text`. */
export function withArgument(text: string): ProcessEntry[] {
  return living((pid) => (read(`/proc/${pid}/cmdline`) ?? '').includes(text));
}

/** Living processes of the pid namespace that `member` is in. */
export function inPidNamespaceOf(member: number): ProcessEntry[] {
  const namespace = pidNamespace(member);
  return namespace === null ? [] : living((pid) => pidNamespace(pid) === namespace);
}

/** Living descendants of a process, children before grandchildren. */
export function descendants(ancestor: number): ProcessEntry[] {
  const all = living(() => true);
  const found: ProcessEntry[] = [];
  const parents = [ancestor];
  for (const parent of parents) {
    for (const entry of all) {
      if (entry.parent === parent) {
        found.push(entry);
        parents.push(entry.pid);
      }
    }
  }
  return found;
}

/** The value of a variable in the environment a process was started with, or null. */
export function environmentOf(pid: number, name: string): string | null {
  const entry = environment(pid).find((line) => line.startsWith(`${name}=`));
  return entry === undefined ? null : entry.slice(name.length + 1);
}

/** A process whose first thread has ended shows it with its other threads alone. */
function environment(pid: number): string[] {
  const first = read(`/proc/${pid}/environ`) ?? '';
  if (first !== '') return first.split('\0');
  const threads = (processEntry(pid)?.threads ?? 0) > 1 ? list(`/proc/${pid}/task`) : [];
  return threads.flatMap((thread) => (read(`/proc/${pid}/task/${thread}/environ`) ?? '').split('\0'));
}

/** The number a process has in its own pid namespace. */
export function innerPid(pid: number): number | null {
  const line = (read(`/proc/${pid}/status`) ?? '').split('\n').find((text) => text.startsWith('NSpid:'));
  const inner = line?.split('\t').at(-1);
  return inner === undefined ? null : Number(inner);
}

/** Resident set of a process in bytes; 0 if it is gone. */
export function residentBytes(pid: number): number {
  const pages = (read(`/proc/${pid}/statm`) ?? '0 0').split(' ')[1];
  return Number(pages) * 4096;
}

/** Processor time a process has used, user and system, in milliseconds (resolution 10 ms). */
export function processorMilliseconds(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return 0;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function living(accept: (pid: number) => boolean): ProcessEntry[] {
  return allPids()
    .filter((pid) => pid !== process.pid && accept(pid))
    .map(processEntry)
    .filter((entry) => entry !== null)
    .filter(lives);
}

function pidNamespace(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}
