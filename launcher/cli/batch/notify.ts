/** The command that a batch file names to be told of the end. */
import { execa } from 'execa';
import type { BatchStatus } from '../../batch/serve/request.ts';

/** Runs it with the batch's status as JSON on its standard input. Returns why it failed; null: it did not. */
export async function notify([program = '', ...words]: readonly string[], status: BatchStatus): Promise<string | null> {
  const { failed, shortMessage } = await execa(program, words, {
    input: JSON.stringify(status),
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'inherit',
    reject: false,
  });
  return failed ? `the command of notify failed: ${shortMessage ?? program}` : null;
}
