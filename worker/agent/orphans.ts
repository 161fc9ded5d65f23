/**
 * What is left of a job when guardian and warden were killed with SIGKILL. The ranks themselves die with the guardian (PR_SET_PDEATHSIG); their
 * descendants became our children, and most carry the job's id in their environment.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { monotonicMs } from '../../control/clock.ts';

const RETRY_MS = 5;
const DEADLINE_MS = 4000;
const GUARDIAN_MS = 1000;
/** Survivors named one by one. */
const MAX_NAMED = 8;

interface Swept {
  /** Processes that were killed. */
  readonly killed: number;
  /** A sentence for each process that SIGKILL does not end. */
  readonly survivors: readonly string[];
}

/**
 * The children of this process now: those that are not orphans. Node makes them on its main thread. A guardian whose warden has been killed
 * already is an orphan, so whoever runs `guardianPath` is left out.
 */
export function childrenNow(guardianPath: string): ReadonlySet<number> {
  const children = childrenOfThread(process.pid, String(process.pid));
  return new Set(children.filter((pid) => !runs(pid, guardianPath)));
}

/**
 * Kills until a look at /proc finds nothing more. `keep`: children that are ours. `guardianPath`: a guardian whose warden was killed ends its ranks
 * by itself, and removes their directory; it has a moment for that.
 */
export async function killOrphans(jobId: string, keep: ReadonlySet<number>, guardianPath: string): Promise<Swept> {
  const killed = new Set<number>();
  const begun = monotonicMs();
  for (;;) {
    const found = findOrphans(jobId, keep);
    if (found.size === 0) return { killed: killed.size, survivors: [] };
    const hasMoment = monotonicMs() < begun + GUARDIAN_MS && [...found].some((pid) => runs(pid, guardianPath));
    for (const pid of hasMoment ? [] : found) {
      killed.add(pid);
      kill(pid);
    }
    if (monotonicMs() > begun + DEADLINE_MS) {
      const named = [...found].slice(0, MAX_NAMED).map(describe);
      return { killed: [...killed].filter((pid) => !found.has(pid)).length, survivors: named };
    }
    await new Promise((resolve) => {
      setTimeout(resolve, RETRY_MS);
    });
  }
}

function findOrphans(jobId: string, keep: ReadonlySet<number>): Set<number> {
  const found = new Set<number>();
  const visit = (pid: number): void => {
    if (pid === process.pid || keep.has(pid) || found.has(pid) || !isAlive(pid)) return;
    found.add(pid);
    for (const child of childrenOf(pid)) visit(child);
  };
  for (const child of childrenOf(process.pid)) visit(child);
  for (const name of readdirSync('/proc')) {
    if (/^[0-9]+$/.test(name) && hasJobId(Number(name), jobId)) visit(Number(name));
  }
  return found;
}

/** Children by thread: the kernel lists a child under the thread that made or inherited it. */
function childrenOf(pid: number): number[] {
  return list(`/proc/${pid}/task`).flatMap((thread) => childrenOfThread(pid, thread));
}

function childrenOfThread(pid: number, thread: string): number[] {
  return read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number);
}

/** It was started by that job, or by one of its processes. */
export function hasJobId(pid: number, jobId: string): boolean {
  return `\0${environmentOf(pid)}`.includes(`\0NCCLRUN_JOB_ID=${jobId}\0`);
}

/** A process whose first thread has ended shows its environment with its other threads alone. */
function environmentOf(pid: number): string {
  const whole = read(`/proc/${pid}/environ`);
  if (whole !== '' || (statusOf(pid)?.threads ?? 0) < 2) return whole;
  for (const thread of list(`/proc/${pid}/task`)) {
    const text = read(`/proc/${pid}/task/${thread}/environ`);
    if (text !== '') return text;
  }
  return '';
}

interface Status {
  readonly command: string;
  /** One letter of proc(5)'s stat. */
  readonly state: string;
  readonly threads: number;
}

/** Null: there is no such process. */
function statusOf(pid: number): Status | null {
  const text = read(`/proc/${pid}/stat`);
  const [begin, end] = [text.indexOf('('), text.lastIndexOf(')')]; // the name may hold anything, a parenthesis too
  if (begin < 0 || end < begin) return null;
  const fields = text.slice(end + 2).split(' ');
  return { command: text.slice(begin + 1, end), state: fields[0] ?? '?', threads: Number(fields[17]) };
}

/** A zombie is gone already; its parent will learn of it. One with other threads is a process whose first thread has ended. */
function isAlive(pid: number): boolean {
  const status = statusOf(pid);
  return status !== null && (!/[ZX]/.test(status.state) || status.threads > 1);
}

function runs(pid: number, path: string): boolean {
  return read(`/proc/${pid}/cmdline`).startsWith(`${path}\0`);
}

function describe(pid: number): string {
  const { command = '?', state = '?' } = statusOf(pid) ?? {};
  const user = userOf(pid);
  const why =
    user === process.getuid?.()
      ? 'SIGKILL is pending; it ends when it is no longer stuck in the kernel or frozen'
      : 'it belongs to another user; end it there as that user or as root';
  return `could not end process ${pid} (${command}, ${user === 0 ? 'root' : `user id ${user}`}, state ${state}): ${why}`;
}

function userOf(pid: number): number {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return -1; // it has ended after all
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone since we looked, or another user's.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
