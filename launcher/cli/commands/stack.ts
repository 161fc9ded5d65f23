/** `ncclrun stack JOB`: where the ranks of a running job are, as a tree of what they have in common. */
import { printableLine } from '../../../control/printable.ts';
import { stacksOf } from '../../jobs/ask.ts';
import { namedJob } from '../../jobs/find.ts';
import { parseStackReport } from '../../jobs/stack-report.ts';
import type { RankRange } from '../../model/types.ts';
import { stackText } from '../../report/stack-text.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { followedRanks } from '../followed-ranks.ts';
import { readWords } from '../read-words.ts';

const COLUMNS = 80;

/** Throws a FailureError (usage), also for a job that does not run. */
export async function stack(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'stack-rank' | 'json'>(argv, commandTable.stack);
  if (asked === 'help') return (await import('./help.ts')).help('stack');
  const job = namedJob('stack', words, 'stacks of a job that hung are in its --report');
  const list = followedRanks(settings.text('stack-rank'), job);
  const report = parseStackReport(await stacksOf(job, list === null ? null : numbersOf(list)));
  const { stdout } = standardStreams();
  if (settings.flag('json')) await stdout.print(`${JSON.stringify({ jobId: job.jobId, ...report })}\n`);
  else {
    const columns = process.stdout.isTTY ? Math.max(COLUMNS, process.stdout.columns || COLUMNS) : COLUMNS;
    await stdout.print(
      stackText(report, columns)
        .map((line) => `${printableLine(line)}\n`)
        .join(''),
    );
  }
  return 0;
}

function numbersOf(list: readonly RankRange[]): number[] {
  const ranks = list.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, index) => first + index),
  );
  return [...new Set(ranks)];
}
