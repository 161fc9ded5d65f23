/** Files beside the job's output that took no more: the job goes on without them, and its user is told at the end. */
import type { Failure } from '../model/failure.ts';
import type { Reporter } from '../model/types.ts';
import type { StandardStreams } from './standard-streams.ts';
import { messageOf } from '../../control/message-of.ts';

export function unwrittenFile(flag: string, path: string, error: unknown): Failure {
  return { type: 'output', message: `${flag} ${path}: ${messageOf(error)}` };
}

/** After the result. `status`: the job's own, which stands unless it is 0. */
export async function reportUnwritten(
  reporters: readonly Reporter[],
  streams: StandardStreams,
  status: number,
): Promise<number> {
  const failures = reporters.flatMap((reporter) => reporter.unwritten?.() ?? []);
  const [first] = failures;
  if (first === undefined) return status;
  const [{ failureBlock }, { makePaint }, { exitStatus }] = await Promise.all([
    import('./summary.ts'),
    import('../text/colour.ts'),
    import('../model/failure-error.ts'),
  ]);
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  const text = failures.map((failure) => failureBlock(failure, paint)).join('');
  await streams.stderr.printPainted(text).catch(() => {}); // nobody is left to read it; the status still tells
  return status === 0 ? exitStatus(first) : status;
}
