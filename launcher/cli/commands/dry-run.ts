/** Prints what a run would do, for people or with --json. */
import type { JobRequest } from '../../model/types.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import type { FurtherProgram } from '../job-request.ts';
import { dryRun, dryRunText } from '../dry-run.ts';
import { normalisedCommand } from '../normalise.ts';
import { runCommandLine, type JobOptionName } from '../options.ts';
import type { Settings } from '../settings.ts';

/** Throws a FailureError (hostfile, allocation). */
export async function printDryRun(
  settings: Settings<JobOptionName>,
  request: JobRequest,
  further: readonly FurtherProgram[] = [],
): Promise<number> {
  const dry = dryRun(request, normalisedCommand(runCommandLine, settings, request.programs[0]?.argv ?? [], further));
  const text = settings.flag('json') ? `${JSON.stringify(dry)}\n` : dryRunText(dry, settings.flag('explain'));
  await standardStreams().stdout.print(text);
  return 0;
}
