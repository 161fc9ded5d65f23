/** The launcher of one attempt of a task: decides that it starts, runs the job, and says how it ended. */
import { readFileSync } from 'node:fs';
import { FailureError } from '../../model/failure-error.ts';
import type { JobResult } from '../../model/types.ts';
import { usageError } from '../../model/usage-error.ts';
import { endOf, endOfFailure } from './ending.ts';
import { errorCode } from './error-code.ts';
import { type AttemptOrder, AttemptRecords } from './records.ts';

/** Status of an attempt that another process has taken, or that a scheduler has given up. */
export const NOT_OURS = 125;

/** `run`: ncclrun with these words. Returns its status. Rejects as it does, after the end was written. */
export async function runAttempt(
  directory: string,
  run: (argv: readonly string[]) => Promise<number>,
): Promise<number> {
  const records = new AttemptRecords(directory);
  const order = records.order();
  if (order === null) throw usageError(`${directory} has no order.json`, 'ncclrun batch starts attempts by itself');
  if (!records.claimStart()) return NOT_OURS;
  return await recorded(records, async () => {
    enter(order);
    return await run(order.argv);
  });
}

/** Writes how `body` has ended, which runs a job with a report. Returns its status. Rejects as it does, after that was written. */
export async function recorded(records: AttemptRecords, body: () => Promise<number>): Promise<number> {
  try {
    const status = await body();
    records.writeEnd(endOf(resultIn(records.reportPath), Date.now()));
    return status;
  } catch (error) {
    if (error instanceof FailureError) records.writeEnd(endOfFailure(error.failure, Date.now()));
    throw error;
  }
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
