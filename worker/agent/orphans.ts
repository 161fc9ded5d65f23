/**
 * What is left of a job when its guardian was killed with SIGKILL. The ranks themselves die with it (PR_SET_PDEATHSIG); their
 * descendants became our children, and most carry the job's id in their environment.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { monotonicMs } from '../../control/clock.ts';

const RETRY_MS = 5;
const DEADLINE_MS = 5000;

/** The children of this process now: those that are not orphans. Node makes them on its main thread. */
export function childrenNow(): ReadonlySet<number> {
  return new Set(childrenOfThread(process.pid, String(process.pid)));
}

/** Kills until a look at /proc finds nothing more. `keep`: children that are ours. Resolves to the number of processes killed. */
export async function killOrphans(jobId: string, keep: ReadonlySet<number>): Promise<number> {
  const killed = new Set<number>();
  const deadline = monotonicMs() + DEADLINE_MS;
  for (;;) {
    const found = findOrphans(jobId, keep);
    if (found.size === 0 || monotonicMs() > deadline) return killed.size;
    for (const pid of found) {
      killed.add(pid);
      kill(pid);
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
  return `\0${read(`/proc/${pid}/environ`)}`.includes(`\0NCCLRUN_JOB_ID=${jobId}\0`);
}

/** A zombie is gone already; its parent will learn of it. */
function isAlive(pid: number): boolean {
  const status = read(`/proc/${pid}/stat`);
  return status !== '' && !/^.*\) [ZX] /s.test(status);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone since we looked.
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
