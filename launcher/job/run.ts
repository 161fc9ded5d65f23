/** A job: allocation → mapping → attempts → result. */
import type { Countdown } from '../../control/clock.ts';
import { randomBytes } from '../../control/random-bytes.ts';
import { helpingHosts, namedAggregatorHosts } from '../mapping/aggregator-hosts.ts';
import { mapRanks } from '../mapping/map-ranks.ts';
import { allocateJob } from '../mapping/program-hosts.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import { KeptAgents } from '../remote/kept-agents.ts';
import { blockSigusr1 } from '../local/host.ts';
import type { StandingAgents } from '../remote/standing-agents.ts';
import { agentStarter } from '../remote/start.ts';
import { JobAttempts } from './attempts.ts';
import type { Failure } from '../model/failure.ts';
import { FailureError } from '../model/failure-error.ts';
import { givenPlan, planMisfit } from './given-plan.ts';
import { HostPool } from './host-pool.ts';
import { JobClock } from './job-clock.ts';
import { JobSuspend } from './job-suspend.ts';
import { PhaseClock } from './phase-clock.ts';
import { tooFewPorts } from './port-need.ts';
import { Restarts } from './restarts.ts';
import { SignalPolicy, type SignalActions } from './signals.ts';
import { hasStdin } from './stdin-flow.ts';
import { noSuchReader, stdinReader } from './stdin-readers.ts';
import type { HostSlots, JobRequest, JobResult, Reporter } from '../model/types.ts';

export interface JobOptions {
  readonly request: JobRequest;
  readonly reporter: Reporter;
  /** Replaces the remote shells. */
  readonly startAgent?: StartAgent | undefined;
  /** Whose agents the job uses; left out: it has agents of its own, which end with it. */
  readonly standingAgents?: StandingAgents | undefined;
  /** Looks at the hosts before the job, by agents that then serve the job. Resolves to why there is to be none. */
  readonly before?:
    | ((start: StartAgent, hosts: readonly HostSlots[], reporter: Reporter) => Promise<Failure | null>)
    | undefined;
}

const JOB_ID_BYTES = 6;

/**
 * Runs the job to its end and reports everything, the result last. Rejects with a FailureError only for what is wrong before there
 * is a job: hostfile, slots, plan file.
 */
export async function runJob({ request, reporter, ...given }: JobOptions): Promise<JobResult> {
  const phases = new PhaseClock();
  const clock = new JobClock();
  const { allocation, hostsOf } = allocateJob(request);
  const early = mapRanks(allocation, request, null, hostsOf);
  const plan = request.planFile === null ? null : await givenPlan(request.planFile);
  const misfit = planMisfit(plan, early) ?? noSuchReader(request, early) ?? tooFewPorts(request, early);
  if (misfit !== null) throw new FailureError(misfit);
  const restarts = new Restarts(request);
  const pool = early === null ? null : new HostPool(request, allocation.hosts, early);
  const namedHosts = namedAggregatorHosts(request, allocation);
  const helping = helpingHosts(request, allocation, namedHosts, early);
  const spares = [...(restarts.left > 0 ? (pool?.spares ?? []) : []), ...helping];
  const starter = given.standingAgents?.starter ?? agentStarter;
  const startAgent = given.startAgent ?? (await starter(request, early?.hosts ?? allocation.hosts, spares));
  const agents = new KeptAgents(startAgent);
  const refused = (await given.before?.(agents.start, early?.hosts ?? allocation.hosts, reporter)) ?? null;
  if (refused !== null) {
    await agents.close();
    throw new FailureError(refused);
  }
  if (early !== null) await reporter.prepare?.(early);
  const attempts = new JobAttempts({
    request,
    reporter,
    jobId: randomBytes(JOB_ID_BYTES).toString('hex'),
    phases,
    clock,
    allocation,
    hostsOf,
    namedAggregatorHosts: namedHosts,
    startAgent: agents.start,
    plan,
    readsStdin: stdinReader(request, hasStdin()),
    restarts,
    agents,
    early,
    pool,
  });
  reporter.recorders?.(() => attempts.recorder());
  reporter.stacks?.((ranks) => attempts.stacks(ranks));
  reporter.status?.(() => attempts.status());
  const signals = new SignalPolicy(signalActions(attempts, restarts), request.forwardSignals);
  signals.install();
  blockSigusr1(false);
  const limits = startLimits(request, attempts, restarts, clock);
  try {
    return await attempts.run();
  } finally {
    for (const limit of limits) limit.cancel();
    blockSigusr1(true); // without a listener it would end us before the result is reported
    signals.remove();
  }
}

function signalActions(attempts: JobAttempts, restarts: Restarts): SignalActions {
  const suspend = new JobSuspend((ranks) => attempts.job.suspend(ranks));
  return {
    interrupt() {
      restarts.giveUp();
      attempts.job.interrupt();
    },
    terminate(signal) {
      restarts.giveUp();
      attempts.job.terminate(signal);
    },
    leave() {
      attempts.job.leave();
      attempts.leave();
    },
    forward: (signal) => attempts.job.forward(signal),
    ignore: (signal) => attempts.job.ignore(signal),
    suspend: (ranks) => suspend.begin(ranks),
    resume(ranks) {
      suspend.end();
      attempts.job.resume(ranks);
    },
  };
}

/** --timeout and --spawn-timeout. */
function startLimits(
  { timeoutSeconds, spawnTimeoutSeconds }: JobRequest,
  attempts: JobAttempts,
  restarts: Restarts,
  clock: JobClock,
): Countdown[] {
  const limits: Countdown[] = [];
  const start = (seconds: number | null, end: (seconds: number) => void): void => {
    if (seconds !== null) limits.push(clock.after(seconds * 1000, () => end(seconds)));
  };
  start(timeoutSeconds, (seconds) => {
    const failure = { type: 'timeout', seconds } as const;
    restarts.giveUp(failure);
    attempts.job.failures.fail(failure);
  });
  start(spawnTimeoutSeconds, (seconds) => {
    const late = attempts.job.late();
    if (late.length > 0) attempts.job.failures.fail({ type: 'spawn-timeout', seconds, late });
  });
  return limits;
}
