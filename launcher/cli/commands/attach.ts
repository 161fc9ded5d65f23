/** `ncclrun attach JOB`: the output of a running job from now on. */
import { printableLine } from '../../../control/printable.ts';
import { namedJob } from '../../jobs/find.ts';
import { follow, OF_ENDED_JOBS } from '../../jobs/follow.ts';
import { commandTable } from '../command-table.ts';
import { followedRanks } from '../followed-ranks.ts';
import { readWords } from '../read-words.ts';

/** Returns the job's exit status. Throws a FailureError (usage), also for a job that does not run. SIGINT ends this process alone. */
export async function attach(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'rank'>(argv, commandTable.attach);
  if (asked === 'help') return (await import('./help.ts')).help('attach');
  const job = namedJob('attach', words, OF_ENDED_JOBS);
  const ranks = followedRanks(settings.text('rank'), job);
  const id = printableLine(job.jobId);
  const greeting = `ncclrun: attached to job ${id}: ^C detaches, ncclrun stop ${id} ends it, ncclrun logs ${id} has earlier output; stdin is not passed on\n`;
  return await follow(job, { follows: true, kept: false, ranks, greeting });
}
