/** Finds the processes of a running command by their part in it, so that a test can take them away. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type ProcessEntry, descendants, environmentOf, withEnvironment } from './processes.ts';
import type { Cluster, ClusterHost } from './cluster.ts';
import type { Command } from './command.ts';

const execFileAsync = promisify(execFile);

const isGuardian = (entry: ProcessEntry): boolean => (entry.argv[0] ?? '').endsWith('ncclrun-guardian');
const isWarden = (entry: ProcessEntry): boolean => (entry.argv[0] ?? '').endsWith('ncclrun-warden');
/** Not the tools of a shell that looks at its files before. */
const isAgent = ({ argv: [program = '', ...words] }: ProcessEntry): boolean =>
  /(^|\/)node$/.test(program) && words.some((word) => /\bagent\.cjs$/.test(word));

/** Without their children, which look the same from when they are forked until they run another program. */
function parents(entries: readonly ProcessEntry[]): ProcessEntry[] {
  const pids = new Set(entries.map(({ pid }) => pid));
  return entries.filter(({ parent }) => !pids.has(parent));
}

function one(entries: readonly ProcessEntry[], what: string): number {
  const [first, ...others] = parents(entries);
  if (first === undefined || others.length > 0) throw new Error(`${entries.length} processes are ${what}, wanted 1`);
  return first.pid;
}

/** The guardian that a launcher started on its own machine. */
export function localGuardian(command: Command): number {
  return one(descendants(command.pid).filter(isGuardian), 'the local guardian');
}

/** The parent of that guardian. */
export function localWarden(command: Command): number {
  return one(descendants(command.pid).filter(isWarden), 'the local warden');
}

/** The guardian of the only job on a host. */
export function guardianOn(cluster: Cluster, host: string): number {
  return one(cluster.host(host).guests().filter(isGuardian), `the guardian on ${host}`);
}

/** The agent of the only job on a host. */
export function agentOn(cluster: Cluster, host: string): number {
  return one(cluster.host(host).guests().filter(isAgent), `the agent on ${host}`);
}

/** Those of a job on a host, and sshd's processes for its connection. */
export type Part = 'agent' | 'warden' | 'guardian' | 'rank' | 'sshd';

/** The parts of the only job on a host that are there now. A rank is what the guardian has started. */
export function partsOn(host: ClusterHost, part: Part): ProcessEntry[] {
  const all = host.processes();
  switch (part) {
    case 'agent':
      return parents(all.filter(isAgent));
    case 'warden':
      return parents(all.filter(isWarden));
    case 'guardian':
      return parents(all.filter(isGuardian));
    case 'rank': {
      const guardians = new Set(all.filter(isGuardian).map(({ pid }) => pid));
      return all.filter(({ parent, pid }) => guardians.has(parent) && environmentOf(pid, 'RANK') !== null);
    }
    case 'sshd':
      return all.filter(
        ({ argv: [name = ''], parent, pid }) => pid !== host.init && name.includes('sshd') && parent !== host.init,
      );
    default:
      return part satisfies never;
  }
}

/** The process of a rank, if it is there. */
export function rankOn(host: ClusterHost, rank: number): number | null {
  const found = partsOn(host, 'rank').find(({ pid }) => environmentOf(pid, 'RANK') === String(rank));
  return found?.pid ?? null;
}

/** kill -9, at once. */
export function killHard(pid: number): void {
  process.kill(pid, 'SIGKILL');
}

/** From now on the process opens nothing more. Rejects if there is no such process. */
export async function exhaustDescriptors(pid: number): Promise<void> {
  await execFileAsync('prlimit', ['--pid', String(pid), '--nofile=3:3']);
}

/** Every living process of a job, wherever on this machine, by the id that its ranks carry. */
export function ofJob(jobId: string): ProcessEntry[] {
  return withEnvironment(`NCCLRUN_JOB_ID=${jobId}`);
}
