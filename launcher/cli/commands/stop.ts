/** `ncclrun stop JOB`: ends a running job of this user's as SIGTERM to its ncclrun does, and waits for that. */
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../control/message-of.ts';
import { printableLine } from '../../../control/printable.ts';
import { isRunning, namedJob } from '../../jobs/find.ts';
import { signalAwake } from '../../local/stopped-process.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

const LOOK_MS = 20;

/** Throws a FailureError (usage), also for a job that does not run. */
export async function stop(argv: readonly string[]): Promise<number> {
  const { asked, words } = await readWords<'help'>(argv, commandTable.stop);
  if (asked === 'help') return (await import('./help.ts')).help('stop');
  const job = namedJob('stop', words);
  try {
    signalAwake(job.pid, 'SIGTERM');
  } catch (error) {
    if (isRunning(job)) throw usageError(`job ${job.jobId} cannot be stopped: ${messageOf(error)}`, 'ask its owner');
  }
  while (isRunning(job)) await delay(LOOK_MS);
  await standardStreams().stdout.print(`job ${printableLine(job.jobId)} has ended\n`);
  return 0;
}
