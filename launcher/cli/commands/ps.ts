/** `ncclrun ps`: this user's running jobs. */
import { listed, runningJobs } from '../../jobs/find.ts';
import { jobsText } from '../../jobs/text.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

/** Throws a FailureError (usage). */
export async function ps(argv: readonly string[]): Promise<number> {
  const { asked, settings } = await readWords<'help' | 'json'>(argv, commandTable.ps);
  if (asked === 'help') return (await import('./help.ts')).help('ps');
  const jobs = runningJobs();
  const text = settings.flag('json')
    ? `${JSON.stringify({ schemaVersion: 1, jobs: jobs.map(listed) })}\n`
    : jobsText(jobs, Date.now());
  await standardStreams().stdout.print(text);
  return 0;
}
