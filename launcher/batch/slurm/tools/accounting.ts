/** What sacct says of jobs that squeue has forgotten. */
import { timeOf } from './queue.ts';
import type { Tool } from './tool.ts';

export interface PastJob {
  readonly state: string;
  /** Null: a signal ended it, or it never ran. */
  readonly exitCode: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly nodes: string;
}

const FIELDS = 'JobID,State,ExitCode,Start,End,NodeList';

/** By `12` or, of arrays, `12_3`. Empty where there is no accounting. */
export async function readAccounting(tool: Tool, jobs: readonly number[]): Promise<ReadonlyMap<string, PastJob>> {
  const words = ['--noheader', '--parsable2', '--allocations', `--jobs=${jobs.join(',')}`, `--format=${FIELDS}`];
  const answer = await tool('sacct', words);
  return answer.ok ? parseAccounting(answer.stdout) : new Map();
}

/** Lines that cannot be read are left out: another source decides then. */
export function parseAccounting(text: string): ReadonlyMap<string, PastJob> {
  const found = new Map<string, PastJob>();
  for (const line of text.split('\n')) {
    const [id = '', state = '', exit = '', start = '', end = '', nodes = ''] = line.split('|');
    const [word = ''] = /^[A-Z_]+/u.exec(state) ?? [];
    if (!/^[0-9]+(?:_[0-9]+)?$/u.test(id) || word === '') continue;
    const [, code, signal] = /^([0-9]+):([0-9]+)$/u.exec(exit) ?? [];
    found.set(id, {
      state: word,
      exitCode: code === undefined || signal !== '0' ? null : Number(code),
      startedAt: timeOf(start),
      endedAt: timeOf(end),
      nodes: nodes === 'None assigned' ? '' : nodes,
    });
  }
  return found;
}
