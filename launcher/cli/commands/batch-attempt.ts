/** `ncclrun batch-attempt DIRECTORY`: the launcher of a batch's task, as the scheduler starts it. */
import { closeSync, writeSync } from 'node:fs';
import { runAttempt } from '../../batch/attempt/run-attempt.ts';
import { run } from './run.ts';

/** A pipe to the scheduler, which may be gone. */
const SCHEDULER_FD = 3;

export function batchAttempt([directory = '']: readonly string[]): Promise<number> {
  return runAttempt(directory, (argv) => {
    tellScheduler();
    return run(argv);
  });
}

function tellScheduler(): void {
  try {
    writeSync(SCHEDULER_FD, 's');
    closeSync(SCHEDULER_FD);
  } catch {
    // Nobody listens: the files say it, too.
  }
}
