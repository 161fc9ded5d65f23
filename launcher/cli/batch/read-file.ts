/** A batch file, with ncclrun's own options in it checked. */
import { readFileSync } from 'node:fs';
import { readBatchFile } from '../../batch/file/read-batch-file.ts';
import { errorCode } from '../../batch/attempt/error-code.ts';
import type { BatchSpec } from '../../batch/model/spec.ts';
import { usageError } from '../../model/usage-error.ts';
import { jobRequest } from '../job-request.ts';
import { runCommandLine, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';

/** Throws a FailureError (usage) with the place of what is wrong. */
export function batchFile(path: string): BatchSpec {
  return readBatchFile({ path, content: contentOf(path), workingDirectory: process.cwd(), checkOptions });
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
