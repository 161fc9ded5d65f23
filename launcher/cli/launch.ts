/** Reporters, then the job, then its exit status. */
import { FailureError } from '../model/failure-error.ts';
import { makePaint } from '../text/colour.ts';
import { isTerminal } from '../model/terminal.ts';
import type { JobRequest, JobResult, Reporter } from '../model/types.ts';
import { composeReporters } from '../report/compose.ts';
import { PlainReporter } from '../report/plain.ts';
import { reportUnwritten } from '../report/unwritten.ts';
import { standardStreams, type StandardStreams } from '../report/standard-streams.ts';
import type { JobOptionName } from './options.ts';
import type { JobOptions } from '../job/run.ts';
import { JobNote } from '../jobs/note.ts';
import { JobTail } from '../jobs/tail.ts';
import { refuseTask } from './refuse-task.ts';
import type { Settings } from './settings.ts';
import { usageError } from '../model/usage-error.ts';
import { messageOf } from '../../control/message-of.ts';

interface LaunchOptions {
  readonly json: boolean;
  readonly verbose: boolean;
  readonly quiet: boolean;
  readonly eventsFile: string | null;
  readonly reportFile: string | null;
  /** Notices that stderr has already shown, for --events. */
  readonly notices: readonly string[];
}

interface LaunchWays extends Pick<JobOptions, 'before' | 'standingAgents'> {
  /** Reporters beside our own. */
  readonly also?: readonly Reporter[] | undefined;
}

/** Runs and reports the job; returns its exit status. `ways`: as in runReported. Rejects with a FailureError if it cannot write a report. */
export async function launch(
  request: JobRequest,
  options: LaunchOptions,
  { also = [], ...ways }: LaunchWays = {},
): Promise<number> {
  const streams = standardStreams();
  const files = await fileReporters(request, options);
  const reporters: Reporter[] = [...also, plainReporter(streams, request, options), ...files];
  if (options.json) {
    const { JsonResultReporter } = await import('../report/result.ts');
    reporters.push(new JsonResultReporter(streams.stdout));
  }
  const result = await runReported(request, composeReporters(reporters), ways);
  return reportUnwritten(reporters, streams, result.exitCode);
}

/** Reporters of a command whose job measures: `others` receives everything but the measurement. */
interface MeasuringReporters {
  readonly json: boolean;
  readonly streams: StandardStreams;
  readonly others: Reporter;
  readonly files: readonly Reporter[];
}

/** Rejects with a FailureError (usage) where a report cannot be written. */
export async function measuringReporters(
  settings: Settings<JobOptionName>,
  request: JobRequest,
  notices: readonly string[],
): Promise<MeasuringReporters> {
  const json = settings.flag('json');
  const options = {
    json,
    verbose: settings.flag('verbose'),
    quiet: settings.flag('quiet'),
    eventsFile: settings.text('events'),
    reportFile: settings.text('report'),
    notices,
  };
  const streams = standardStreams();
  const plain = plainReporter(streams, request, options);
  const files = await fileReporters(request, options);
  return { json, streams, others: composeReporters([plain, ...files]), files };
}

export function plainReporter(
  streams: StandardStreams,
  request: JobRequest,
  options: Pick<LaunchOptions, 'json' | 'verbose' | 'quiet'>,
): PlainReporter {
  return new PlainReporter({
    streams,
    tagOutput: request.tagOutput,
    timestamps: request.timestampOutput,
    shown: request.outputShown,
    shownRanks: request.outputRanks,
    stdoutTaken: options.json,
    live: showsLive(request, options, { term: process.env['TERM'], isTerminal: isTerminal(2) }),
    fold: request.fold,
    verbose: options.verbose,
    quiet: options.quiet,
    hangFails: request.onHang === 'abort' || request.onHang === 'restart',
    paint: (isTerminal) => makePaint(isTerminal, process.env),
  });
}

/** Whether a line of what is going on is drawn on stderr. */
export function showsLive(
  { live }: Pick<JobRequest, 'live'>,
  { json, quiet }: Pick<LaunchOptions, 'json' | 'quiet'>,
  stderr: { readonly term: string | undefined; readonly isTerminal: boolean },
): boolean {
  return live && !json && !quiet && stderr.term !== 'dumb' && stderr.isTerminal;
}

/** The note for `ncclrun ps`, what `ncclrun logs` shows, and the files of --events and --report, which it opens; those of --output follow when it is known who runs where. Rejects with a FailureError (usage) where one cannot be written. */
async function fileReporters(request: JobRequest, options: LaunchOptions): Promise<Reporter[]> {
  const note = new JobNote();
  const reporters: Reporter[] = [note, new JobTail(request, note)];
  if (request.outputFiles.length > 0) {
    const { OutputFilesReporter } = await import('../report/output-files.ts');
    const { tagOutput, timestampOutput: timestamps } = request;
    reporters.push(new OutputFilesReporter(request.outputFiles, { tagOutput, timestamps }));
  }
  if (options.eventsFile !== null) {
    const { EventsReporter } = await import('../report/events.ts');
    const events = await writable('--events', options.eventsFile, (path) => EventsReporter.open(path));
    for (const message of options.notices) events.event({ type: 'notice', time: Date.now(), message });
    reporters.push(events);
  }
  if (options.reportFile !== null) {
    const { ResultFileReporter } = await import('../report/result.ts');
    reporters.push(await writable('--report', options.reportFile, (path) => ResultFileReporter.open(path)));
  }
  return reporters;
}

async function writable(flag: string, path: string, open: (path: string) => Promise<Reporter>): Promise<Reporter> {
  try {
    return await open(path);
  } catch (error) {
    const reason = messageOf(error);
    throw usageError(`${flag} ${path} cannot be written: ${reason}`, 'name a file in a directory you may write to');
  }
}

/** The job with any reporter. Throws a FailureError (usage) in a task of srun. A failure before there is a job becomes a result like every other, so that --json prints one. */
export async function runReported(
  request: JobRequest,
  reporter: Reporter,
  ways: Omit<JobOptions, 'request' | 'reporter'> = {},
): Promise<JobResult> {
  refuseTask(process.env);
  const { runJob } = await import('../job/run.ts');
  try {
    return await runJob({ request, reporter, ...ways });
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    reporter.event({ type: 'failure', time: Date.now(), failure: error.failure, primary: true });
    const { resultWithoutJob } = await import('./refused.ts');
    const result = resultWithoutJob(error.failure);
    await reporter.result(result);
    return result;
  }
}
