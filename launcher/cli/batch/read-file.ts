/** A batch file, with ncclrun's own options in it checked. */
import { readFileSync } from 'node:fs';
import { readBatchFile } from '../../batch/file/read-batch-file.ts';
import { errorCode } from '../../batch/attempt/error-code.ts';
import type { BatchSpec, JobSpec } from '../../batch/model/spec.ts';
import { usageError } from '../../model/usage-error.ts';
import { jobRequest } from '../job-request.ts';
import { runCommandLine, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';

/** Throws a FailureError (usage) with the place of what is wrong. */
export function batchFile(path: string): BatchSpec {
  return readBatchFile({ path, content: contentOf(path), workingDirectory: process.cwd(), checkOptions });
}

/** One more job of a batch: it may depend on those that are there. Throws a FailureError (usage). */
export function submittedJob(text: string, { name, jobs }: BatchSpec): JobSpec {
  const job: unknown = JSON.parse(text);
  const others = jobs.map((one) => ({ name: one.name, command: 'true' }));
  const content = Buffer.from(JSON.stringify({ version: 1, name, jobs: [...others, job] }, null, 2));
  const read = readBatchFile({ path: 'the job', content, workingDirectory: process.cwd(), checkOptions });
  const last = read.jobs.at(-1);
  if (last === undefined) throw new Error('a job was read, and is not there');
  return last;
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = errorCode(error);
    if (code === null) throw error;
    throw usageError(`the batch file ${path} cannot be read (${code})`, 'see examples/batch for such files');
  }
}

function checkOptions(words: readonly string[]): void {
  const read = readCommandLine<JobOptionName>([...words, '--', 'true'], runCommandLine, {});
  jobRequest(read.settings, read.words, read.further);
}
