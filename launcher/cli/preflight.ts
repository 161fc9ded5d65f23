/** --doctor of a job: doctor looks at its hosts by the agents that then start its ranks. */
import { failuresOf, noticesOf } from '../doctor/preflight.ts';
import type { JobOptions } from '../job/run.ts';
import type { Failure } from '../model/failure.ts';
import { exitStatus } from '../model/failure-error.ts';
import type { JobRequest } from '../model/types.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import { doctorJobs } from './doctor-jobs.ts';
import { keep } from './kept-runs.ts';
import { examine, type Depth } from './examine.ts';
import { readingsTogether } from './readings-of-hosts.ts';

/** What a job is given as `before`. */
export function preflight(request: JobRequest, depth: Exclude<Depth, 'usual'>): NonNullable<JobOptions['before']> {
  return async (startAgent, slots, reporter): Promise<Failure | null> => {
    const notice = (message: string) => reporter.event({ type: 'notice', time: Date.now(), message });
    const started = performance.now();
    // An agent waits for another order where its own says that one may follow.
    const waiting: StartAgent = (host, order, handler) => startAgent(host, { ...order, maxRestarts: 1 }, handler);
    const jobs = doctorJobs(request, waiting);
    const asked = await readingsTogether(
      jobs,
      slots.map(({ name }) => name),
      ['--quick'],
    );
    if (!Array.isArray(asked)) return asked;
    const found = await examine(jobs, asked, depth);
    const seconds = (performance.now() - started) / 1000;
    const failure = failuresOf(found.findings);
    const unkept = keep(found, seconds, failure === null ? 0 : exitStatus(failure));
    for (const message of noticesOf(found.findings, found.hosts.length, seconds)) notice(message);
    for (const message of unkept) notice(`doctor: ${message}`);
    return failure;
  };
}
