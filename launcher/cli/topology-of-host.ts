/** Topology of another host: runs `ncclrun topo` there as a job of one rank, so every remote shell works, and staging copies ncclrun if needed. */
import { join } from 'node:path';
import { plainReporter, runReported } from './launch.ts';
import { jobRequest } from './job-request.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult, RankMap, Reporter } from '../model/types.ts';
import { installationRoot } from '../local/host.ts';
import type { StandardStreams } from '../report/standard-streams.ts';
import { type PrintedTopology, readPrintedTopology } from '../topology/printed.ts';

/** `settings` has the options of remote shells. Returns the exit status of a job that failed and reported it. Throws a FailureError. */
export async function otherHost(
  host: string,
  settings: Settings<JobOptionName>,
  streams: StandardStreams,
): Promise<PrintedTopology | number> {
  const command = [join(installationRoot, 'bin', 'ncclrun'), 'topo', '--format', 'json'];
  const base = jobRequest(settings, command);
  const programs = base.programs.map((program) => ({
    ...program,
    ranks: 1,
    workingDirectory: program.workingDirectory ?? '/',
  }));
  const request = { ...base, programs, hostList: host, stdin: { type: 'none' } } as const;
  const options = { json: false, verbose: settings.flag('verbose'), quiet: false, eventsFile: null, reportFile: null };
  const answer = new Answer(plainReporter(streams, request, options));
  const { exitCode } = await runReported(request, answer);
  return exitCode === 0 ? readPrintedTopology(answer.text(), host) : exitCode;
}

/** Collects the rank's stdout; reports everything else as in any job. */
class Answer implements Reporter {
  readonly #inner: Reporter;
  readonly #chunks: Uint8Array[] = [];

  constructor(inner: Reporter) {
    this.#inner = inner;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  async prepare(map: RankMap): Promise<void> {
    await this.#inner.prepare?.(map);
  }

  event(event: JobEvent): void {
    this.#inner.event(event);
  }

  async output(chunk: OutputChunk): Promise<void> {
    if (chunk.stream === 'stdout') this.#chunks.push(Uint8Array.from(chunk.bytes));
    else await this.#inner.output(chunk);
  }

  async result(result: JobResult): Promise<void> {
    await this.#inner.result(result);
  }
}
