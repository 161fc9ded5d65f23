/** A job of the launcher's own code on simulated agents: what it takes from the first hello on. */
import { plainReporter } from '../../launcher/cli/launch.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { runJob } from '../../launcher/job/run.ts';
import type { Reporter } from '../../launcher/model/types.ts';
import { JobNote } from '../../launcher/jobs/note.ts';
import { composeReporters } from '../../launcher/report/compose.ts';
import { standardStreams } from '../../launcher/report/standard-streams.ts';
import { SimulatedAgents, type Traffic } from './agents.ts';

export interface SimulatedStart {
  /** From the first host's hello to the last rank's start, ms. */
  readonly startMs: number;
  /** From then to the last host's plan of a communicator of all ranks, ms. */
  readonly joinMs: number;
  /** From the first rank's end to the result, ms. */
  readonly endMs: number;
  /** Of the whole job but for the communicator. */
  readonly traffic: Traffic;
  /** Of the communicator. */
  readonly joining: Traffic;
}

/** `slots`: stated with the hosts; else the hosts say them. */
export async function simulatedStart(
  hosts: number,
  perHost: number,
  slots: 'stated' | 'found',
): Promise<SimulatedStart> {
  const list = `node[1-${hosts}]${slots === 'stated' ? `:${perHost}` : ''}`;
  const { settings, words } = readCommandLine<JobOptionName>(['-H', list, 'prog'], runCommandLine, {});
  const request = jobRequest(settings, words);
  const agents = new SimulatedAgents();
  const running = Promise.withResolvers<number>();
  let firstHello = 0;
  const clock: Reporter = {
    event(event) {
      if (event.type === 'host-up' && firstHello === 0) firstHello = performance.now();
      if (event.type === 'phase' && event.phase === 'run') running.resolve(performance.now());
    },
    output: () => Promise.resolve(),
    result: () => Promise.resolve(),
  };
  const files = { json: false, verbose: false, quiet: false, eventsFile: null, reportFile: null };
  const reporter = composeReporters([clock, plainReporter(standardStreams(), request, files), new JobNote()]);
  const job = runJob({ request, reporter, startAgent: agents.start });
  const allRun = await Promise.race([running.promise, job.then(({ reason }) => Promise.reject(new Error(reason)))]);
  const before = { ...agents.traffic };
  const joinFrom = performance.now();
  await agents.join();
  const joined = performance.now();
  const joining = {
    messages: agents.traffic.messages - before.messages,
    bytes: agents.traffic.bytes - before.bytes,
  };
  agents.exit();
  const { ok, reason } = await job;
  if (!ok) throw new Error(`the simulated job ended: ${reason}`);
  const { messages, bytes } = agents.traffic;
  return {
    startMs: allRun - firstHello,
    joinMs: joined - joinFrom,
    endMs: performance.now() - joined,
    traffic: { messages: messages - joining.messages, bytes: bytes - joining.bytes },
    joining,
  };
}
