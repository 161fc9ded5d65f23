/** The user's jobs as squeue lists them: columns of fixed width, as names and reasons may hold any other separator. */
import { ownUser } from '../../../../control/own-user.ts';
import { slurmFailure } from './slurm-failure.ts';
import type { Tool } from './tool.ts';

export interface QueueRow {
  readonly name: string;
  /** Number of the job; of an array, that of the whole. */
  readonly job: number;
  /** Null: no array, or all of its tasks that have no row of their own. */
  readonly index: number | null;
  readonly state: string;
  /** How often Slurm has started it again. */
  readonly restarts: number;
  readonly held: boolean;
  readonly reason: string;
  /** `node[1-2]`; empty before it runs. */
  readonly nodes: string;
  /** Milliseconds since 1970; null: unknown. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

const columns = [
  ['Name', 220],
  ['ArrayJobID', 16],
  ['ArrayTaskID', 16],
  ['State', 20],
  ['RestartCnt', 12],
  ['PriorityLong', 24],
  ['StartTime', 24],
  ['EndTime', 24],
  ['Reason', 60],
  ['NodeList', 400],
] as const;

const format = columns.map(([name, width]) => `${name}:${width}`).join(',');

/** Jobs that have one of these names, those that ended a while ago included. Throws a FailureError (system) where Slurm does not say. */
export async function readQueue(tool: Tool, isOurs: (name: string) => boolean): Promise<QueueRow[]> {
  const words = ['--noheader', '--array', '--states=all', `--user=${ownUser()}`, `--Format=${format}`];
  const answer = await tool('squeue', words);
  if (!answer.ok) throw slurmFailure('squeue', answer);
  return parseQueue(answer.stdout, isOurs);
}

/** Throws a FailureError (system) for a line of ours that cannot be read. */
export function parseQueue(text: string, isOurs: (name: string) => boolean): QueueRow[] {
  return text.split('\n').flatMap((line) => {
    const cells: string[] = [];
    let at = 0;
    for (const [, width] of columns) {
      cells.push(line.slice(at, at + width).trim());
      at += width;
    }
    const [name = ''] = cells;
    return isOurs(name) ? [rowOf(cells, line)] : [];
  });
}

function rowOf(cells: readonly string[], line: string): QueueRow {
  const [name = '', job = '', index = '', state = '', restarts = '', priority = '', start = '', end = ''] = cells;
  const isRead = /^[0-9]+$/u.test(job) && /^[A-Z_]+$/u.test(state) && /^[0-9]+$/u.test(restarts);
  if (!isRead) throw slurmFailure('squeue', { sentence: `it lists "${line.trim().replaceAll(/\s+/gu, ' ')}"` });
  const [, , , , , , , , reason = '', nodes = ''] = cells;
  return {
    name,
    job: Number(job),
    index: /^[0-9]+$/u.test(index) ? Number(index) : null,
    state,
    restarts: Number(restarts),
    held: priority === '0',
    reason: reason === 'None' ? '' : reason,
    nodes: /^\(?(?:null|None)\)?$/u.test(nodes) ? '' : nodes,
    startedAt: timeOf(start),
    endedAt: timeOf(end),
  };
}

/** As SLURM_TIME_FORMAT=standard has it: local, without a zone. */
export function timeOf(text: string): number | null {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$/u.test(text)) return null;
  const time = new Date(text).getTime();
  return Number.isNaN(time) ? null : time;
}
