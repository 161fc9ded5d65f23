/** `ncclrun dump JOB`: what the ranks of a running job have recorded, into a file. */
import { writeFileSync } from 'node:fs';
import { messageOf } from '../../../control/message-of.ts';
import { printableLine } from '../../../control/printable.ts';
import { dumpOf } from '../../jobs/ask.ts';
import { namedJob } from '../../jobs/find.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

/** Throws a FailureError (usage), also for a job that does not run. */
export async function dump(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'output-dump'>(argv, commandTable.dump);
  if (asked === 'help') return (await import('./help.ts')).help('dump');
  const job = namedJob('dump', words, 'what a job recorded that has ended is in the file of its --report');
  const recorder = Buffer.from(await dumpOf(job)).toString('utf8');
  const path = settings.text('output-dump') ?? `ncclrun-${job.jobId}.json`;
  try {
    writeFileSync(path, `{"schemaVersion":1,"jobId":${JSON.stringify(job.jobId)},"recorder":${recorder}}\n`);
  } catch (error) {
    throw usageError(`${path} cannot be written: ${messageOf(error)}`, 'name a file in a directory you may write to');
  }
  await standardStreams().stdout.print(printableLine(`wrote ${path}: ncclrun replay ${path} shows it`) + '\n');
  return 0;
}
