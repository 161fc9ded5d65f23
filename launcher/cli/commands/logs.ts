/** `ncclrun logs JOB`: the last output of a running job, or that of a batch's task. */
import { namedJob, runningJobs } from '../../jobs/find.ts';
import { follow, OF_ENDED_JOBS } from '../../jobs/follow.ts';
import { commandTable } from '../command-table.ts';
import { followedRanks } from '../followed-ranks.ts';
import { readWords } from '../read-words.ts';

/** Returns the job's exit status with -f. Throws a FailureError (usage), also for a job that does not run. */
export async function logs(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'rank' | 'follow'>(argv, commandTable.logs);
  if (asked === 'help') return (await import('./help.ts')).help('logs');
  const [word = ''] = words;
  if (words.length === 1 && word.includes('/')) {
    const { printTaskOutput } = await import('../batch/task-output.ts');
    return await printTaskOutput(word, settings.flag('follow'));
  }
  const isRunningJob = runningJobs().some(({ jobId, pid }) => jobId.startsWith(word) || String(pid) === word);
  if (words.length === 1 && !isRunningJob) {
    const { refuseBatch } = await import('../batch/batches.ts');
    refuseBatch(word, process.env);
  }
  const job = namedJob('logs', words, OF_ENDED_JOBS);
  const ranks = followedRanks(settings.text('rank'), job);
  return await follow(job, { follows: settings.flag('follow'), kept: true, ranks, greeting: '' });
}
