/** What --json prints of a command that never came to a job. */
import type { Failure } from '../model/failure.ts';
import { exitStatus } from '../model/failure-error.ts';
import type { JobResult } from '../model/types.ts';
import { composeReporters } from '../report/compose.ts';
import { JsonResultReporter } from '../report/result.ts';
import { PerfReporter } from '../report/perf.ts';
import type { Writer } from '../report/writer.ts';
import { jsonAsked } from './json-asked.ts';
import { perfCommandLine, runCommandLine } from './options.ts';

/** Prints the result object to `stdout` where `argv` (after `perf`, if that is the command) asks for one. */
export async function printRefused(
  failure: Failure,
  command: 'run' | 'perf',
  argv: readonly string[],
  stdout: Writer,
): Promise<void> {
  if (!jsonAsked(argv, command === 'perf' ? perfCommandLine : runCommandLine, process.env)) return;
  const reporter =
    command === 'perf' ? new PerfReporter(composeReporters([]), stdout, true) : new JsonResultReporter(stdout);
  await reporter.result(resultWithoutJob(failure));
}

export function resultWithoutJob(failure: Failure): JobResult {
  return {
    schemaVersion: 1,
    jobId: '',
    ok: false,
    reason: failure.type,
    restarts: 0,
    exitCode: exitStatus(failure),
    failures: [failure],
    verdicts: [],
    hosts: [],
    ranks: [],
    phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
  };
}
