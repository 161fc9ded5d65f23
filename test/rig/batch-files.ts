/** Files of ncclrun batch as their tests read them. */
import type { CheckOptions } from '../../launcher/batch/file/options.ts';
import { readBatchFile } from '../../launcher/batch/file/read-batch-file.ts';
import type { BatchSpec, JobSpec } from '../../launcher/batch/model/spec.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';

export function readText(content: string | Uint8Array, checkOptions: CheckOptions = () => {}): BatchSpec {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return readBatchFile({ path: 'batch.yaml', content: bytes, workingDirectory: '/work', checkOptions });
}

/** A job `a` with these lines beside its name and command. */
export function jobWith(...lines: readonly string[]): JobSpec {
  const text = ['jobs:', '  - name: a', ...lines.map((line) => `    ${line}`)].join('\n');
  const said = lines.some((line) => /^commands?:/u.test(line));
  const [job] = readText(`${text}${said ? '' : '\n    command: x'}\n`).jobs;
  if (job === undefined) throw new Error('the file has no job');
  return job;
}

/** `line:column+length message | remedy`, or `none` for a file without a mistake. Rethrows whatever is no usage error. */
export function mistakeIn(content: string | Uint8Array, checkOptions?: CheckOptions): string {
  try {
    readText(content, checkOptions);
    return 'none';
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw error;
    const { position, message, remedy } = error.failure;
    const place = position === undefined ? '-' : `${position.line}:${position.column}+${position.length}`;
    return `${place} ${message} | ${remedy}`;
  }
}
