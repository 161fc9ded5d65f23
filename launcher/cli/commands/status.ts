/** `ncclrun status JOB`: how the communicators of a running job fare, and which ranks stand out. */
import { namedJob } from '../../jobs/find.ts';
import { statusOf } from '../../jobs/ask.ts';
import { statusText } from '../../jobs/status-text.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

/** Throws a FailureError (usage), also for a job that does not run. */
export async function status(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'json'>(argv, commandTable.status);
  if (asked === 'help') return (await import('./help.ts')).help('status');
  const job = namedJob('status', words, 'how a job ended is in the file of its --report');
  const read = await statusOf(job);
  const text = settings.flag('json')
    ? `${JSON.stringify({ jobId: job.jobId, startedAt: job.startedAt, ...read })}\n`
    : statusText(job, read);
  await standardStreams().stdout.print(text);
  return 0;
}
