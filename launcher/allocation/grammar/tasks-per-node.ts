/** Slurm's SLURM_TASKS_PER_NODE: `2(x3),1` is 2, 2, 2, 1. */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import { parseSlots } from './number.ts';
import { maximumHosts } from './reading.ts';
import { splitOutsideBrackets, type Token } from './tokenize.ts';
import { counted } from '../../text/counted.ts';

/** One count per host. Throws a FailureError (hostfile). */
export function parseTasksPerNode(token: Token, line: SourceLine): number[] {
  const counts: number[] = [];
  for (const part of splitOutsideBrackets(token, ',')) {
    const [, digits = '', times] = /^([0-9]+)(?:\(x([0-9]{1,7})\))?$/u.exec(part.text) ?? [];
    const position = positionIn(line, part.offset, part.text.length);
    if (digits === '') {
      const shown = part.text === '' ? 'a number of tasks is missing' : `"${part.text}" is no number of tasks`;
      throw hostfileError(shown, position, 'write 2(x3),1 for three hosts of two tasks and one of one');
    }
    const count = parseSlots({ text: digits, offset: part.offset }, 'the number of tasks', line);
    const repeat = times === undefined ? 1 : Number(times);
    if (repeat === 0) throw hostfileError('the count is repeated 0 times', position, 'leave it out');
    if (counts.length + repeat > maximumHosts) {
      throw hostfileError('tasks for too many hosts', position, `at most ${maximumHosts} are possible`);
    }
    for (let index = 0; index < repeat; index += 1) counts.push(count);
  }
  return counts;
}

export interface TasksPerNode {
  readonly counts: readonly number[];
  readonly token: Token;
}

/** Throws a FailureError (hostfile) unless there is a count for each of `hosts` hosts. */
export function checkTasks({ counts, token }: TasksPerNode, hosts: number, line: SourceLine): void {
  if (counts.length === hosts) return;
  const message = `tasks for ${plural(counts.length)}, but the list names ${plural(hosts)}`;
  const position = positionIn(line, token.offset, token.text.length);
  throw hostfileError(message, position, 'give both as they stand in SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE');
}

function plural(count: number): string {
  return counted(count, 'host');
}

/** `2, 2, 2, 1` → `2(x3),1`. */
export function printTasksPerNode(counts: readonly number[]): string {
  const runs: { readonly count: number; times: number }[] = [];
  for (const count of counts) {
    const last = runs.at(-1);
    if (last?.count === count) last.times += 1;
    else runs.push({ count, times: 1 });
  }
  return runs.map(({ count, times }) => (times === 1 ? `${count}` : `${count}(x${times})`)).join(',');
}
