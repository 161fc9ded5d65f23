/** One attempt of a task inside its allocation: runs the job, writes how it ended, and asks Slurm for another one where the file wants that. */
import { makeDirectory } from '../../attempt/durable-file.ts';
import { type AttemptEnd, type AttemptRecords, recordsIn } from '../../attempt/records.ts';
import { NOT_OURS, recorded } from '../../attempt/run-attempt.ts';
import { mayRetry } from '../../run/retry.ts';
import type { AttemptPolicy } from '../script/attempt-order.ts';
import { type Counts, countsBefore } from './counts.ts';

interface SlurmAttempt {
  readonly policy: AttemptPolicy;
  readonly task: number;
  readonly attempt: number;
  /** Of ncclrun: options, program and arguments. */
  readonly words: readonly string[];
  /** ncclrun with these words. */
  run(this: void, argv: readonly string[]): Promise<number>;
  /** Puts the job into Slurm's queue again, which ends it. */
  requeue(this: void): Promise<void>;
  /** A sentence for the user. */
  say(this: void, text: string): Promise<void>;
}

/** Status of a task that was interrupted too often. */
const GIVEN_UP = 1;

/** Returns ncclrun's status. Rejects as it does. */
export async function runInSlurm(one: SlurmAttempt): Promise<number> {
  const { policy, task, attempt, words, run } = one;
  const records = recordsIn(policy.results, task, attempt);
  makeDirectory(records.directory);
  // Slurm may start a script twice where it has lost a host for a while.
  if (!records.claimStart()) {
    await one.say(`another process runs attempt ${attempt} of this task: ${records.directory}`);
    return NOT_OURS;
  }
  const before = countsBefore(policy.results, task, policy.before + 1, attempt);
  if (before.interruptions > policy.retry.interruptions) return await giveUp(records, before, one);
  try {
    return (await recorded(records, () => run(['--report', records.reportPath, ...words]))).status;
  } finally {
    const end = records.end();
    if (end !== null && isToRunAgain(end, before, policy)) {
      await one.say(`attempt ${attempt} failed: ${end.sentence}; Slurm queues the task again`);
      await one.requeue();
    }
  }
}

/** A signal ended what it ended on purpose: scancel's, or that of Slurm's time limit. */
function isToRunAgain(end: AttemptEnd, { errors, interruptions }: Counts, { retry }: AttemptPolicy): boolean {
  if (end.outcome === 'success' || end.outcome === 'timed-out' || end.reason === 'interrupt') return false;
  const isInterruption = end.outcome === 'interruption';
  const counts = {
    errors: errors + (isInterruption ? 0 : 1),
    interruptions: interruptions + (isInterruption ? 1 : 0),
  };
  return mayRetry({ ...retry, delaySeconds: 0 }, end, counts);
}

async function giveUp(records: AttemptRecords, { interruptions }: Counts, { say }: SlurmAttempt): Promise<number> {
  const sentence = `${interruptions} of its attempts were interrupted`;
  records.writeEnd({
    schemaVersion: 1,
    outcome: 'interruption',
    exitCode: GIVEN_UP,
    reason: 'interrupt',
    outOfMemory: false,
    sentence,
    badHosts: [],
    busySlots: [],
    endedAt: Date.now(),
  });
  await say(`${sentence}: the task is given up`);
  return GIVEN_UP;
}
