/** One attempt of a task in its launcher, which decides that it starts, runs the job, and says how it ended. */
import { readFileSync } from 'node:fs';
import { FailureError } from '../../model/failure-error.ts';
import type { JobResult } from '../../model/types.ts';
import { usageError } from '../../model/usage-error.ts';
import { endOf, endOfFailure } from './ending.ts';
import { errorCode } from './error-code.ts';
import { type AttemptOrder, AttemptRecords } from './records.ts';

/** Status of an attempt that another process has taken, or that a scheduler has given up. */
export const NOT_OURS = 125;
/** Failures of the program alone. */
const ORDERLY: ReadonlySet<JobResult['reason']> = new Set(['rank-exit', 'rank-signal', 'gpus-busy']);

interface Ended {
  readonly status: number;
  /** Nothing of the job is left, and its hosts are well: another one may follow in this process. */
  readonly isInOrder: boolean;
}

/** `run`: ncclrun with these words. Rejects as it does, after the end was written. */
export async function runAttempt(directory: string, run: (argv: readonly string[]) => Promise<number>): Promise<Ended> {
  const records = new AttemptRecords(directory);
  const order = records.order();
  if (order === null) throw usageError(`${directory} has no order.json`, 'ncclrun batch starts attempts by itself');
  if (!records.claimStart()) return { status: NOT_OURS, isInOrder: true };
  return await recorded(records, async () => {
    enter(order);
    return await run(order.argv);
  });
}

/** Writes how `body` has ended, which runs a job with a report. Rejects as it does, after that was written. */
export async function recorded(records: AttemptRecords, body: () => Promise<number>): Promise<Ended> {
  try {
    const status = await body();
    const result = resultIn(records.reportPath);
    records.writeEnd(endOf(result, Date.now()));
    return { status, isInOrder: isInOrder(result) };
  } catch (error) {
    if (error instanceof FailureError) records.writeEnd(endOfFailure(error.failure, Date.now()));
    throw error;
  }
}

function isInOrder({ ok, reason, hosts }: JobResult): boolean {
  return ok || (ORDERLY.has(reason) && hosts.every(({ state }) => state !== 'lost'));
}

function enter({ workingDirectory, environment }: AttemptOrder): void {
  try {
    process.chdir(workingDirectory);
  } catch (error) {
    throw usageError(
      `the working directory ${workingDirectory} cannot be entered (${errorCode(error) ?? 'error'})`,
      'make it, or correct working_dir in the batch file',
    );
  }
  for (const [name, value] of Object.entries(environment)) process.env[name] = value;
}

function resultIn(path: string): JobResult {
  const result: JobResult = JSON.parse(readFileSync(path, 'utf8'));
  return result;
}
