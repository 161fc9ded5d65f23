/** A job: allocation → mapping → attempts → result. */
import type { Countdown } from '../../control/clock.ts';
import { randomBytes } from '../../control/random-bytes.ts';
import { mapRanks } from '../mapping/map-ranks.ts';
import { allocateJob } from '../mapping/program-hosts.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import { KeptAgents } from '../remote/kept.ts';
import { blockSigusr1 } from '../local/host.ts';
import { agentStarter } from '../remote/start.ts';
import { type AttemptParts, startRanks } from './attempt.ts';
import { FailureError } from '../model/failure-error.ts';
import { FailurePolicy } from './failure-policy.ts';
import { givenPlan, planMisfit } from './given-plan.ts';
import { GpuMemoryCheck } from './gpu-memory.ts';
import { HangJudge } from './hang.ts';
import { HostPool } from './host-pool.ts';
import { Job } from './job.ts';
import { JobClock } from './job-clock.ts';
import type { JobParts } from './job-parts.ts';
import { PhaseClock } from './phase-clock.ts';
import { Restarts } from './restarts.ts';
import { jobResult } from './result.ts';
import { type SignalActions, SignalPolicy } from './signals.ts';
import { noSuchReader, stdinReader } from './stdin-readers.ts';
import { Stopping } from './stopping.ts';
import type { JobRequest, JobResult, RankMap, Reporter } from '../model/types.ts';
import { Xids } from './xids.ts';

export interface JobOptions {
  readonly request: JobRequest;
  readonly reporter: Reporter;
  /** Instead of the ways to the hosts. */
  readonly startAgent?: StartAgent;
}

const JOB_ID_BYTES = 6;
/** Who leaves at once waits no longer for a reader of the output that is slow. */
const FAREWELL_MS = 1000;

/**
 * Runs the job to its end and tells the reporter of everything, the result last. Rejects with a FailureError only for what is
 * wrong before there is a job: hostfile, slots, plan file.
 */
export async function runJob({ request, reporter, ...given }: JobOptions): Promise<JobResult> {
  const phases = new PhaseClock();
  const clock = new JobClock();
  const { allocation, hostsOf } = allocateJob(request);
  const early = mapRanks(allocation, request, null, hostsOf);
  const plan = request.planFile === null ? null : await givenPlan(request.planFile);
  const wrong = planMisfit(plan, early) ?? noSuchReader(request, early);
  if (wrong !== null) throw new FailureError(wrong);
  const asked = early?.hosts ?? allocation.hosts;
  const restarts = new Restarts(request);
  let pool = early === null ? null : new HostPool(request, allocation.hosts, early);
  const spares = restarts.left > 0 ? (pool?.spares ?? []) : [];
  const agents = new KeptAgents(given.startAgent ?? (await agentStarter(request, asked, spares)));
  if (early !== null) await reporter.prepare?.(early);
  const readsStdin = stdinReader(request);
  const jobId = randomBytes(JOB_ID_BYTES).toString('hex');
  const begin = (): Beginning => beginAttempt({ request, reporter, phases, clock, readsStdin }, asked.length);
  let now = begin();
  const left = Promise.withResolvers<void>();
  const signals = new SignalPolicy(
    signalActions(() => now.job, restarts, left.resolve),
    request.forwardSignals,
  );
  signals.install();
  blockSigusr1(false);
  const limits = startLimits(request, () => now.job, restarts, clock);
  const parts: AttemptParts = {
    request,
    reporter,
    jobId,
    phases,
    clock,
    allocation,
    hostsOf,
    startAgent: agents.start,
    plan,
    readsStdin,
  };
  let wanted: RankMap | null = early;
  try {
    for (;;) {
      const { job, policy, memory } = now;
      const map = await startRanks({
        ...parts,
        job,
        memory,
        epoch: restarts.done,
        early: wanted,
        asked: wanted?.hosts ?? allocation.hosts,
        spares: pool?.spares.slice(0, restarts.left) ?? [],
      });
      await Promise.race([left.promise, job.over.then(() => job.close())]);
      const primary = policy.decide();
      if (map !== null) pool ??= new HostPool(request, allocation.hosts, map);
      if (primary !== null && map !== null && pool !== null && restarts.another(primary, pool.replaces(primary, map))) {
        const { failures } = policy;
        const next = pool.next({ primary, failures, lostSpares: job.lostSpares }, map);
        wanted = next.map;
        const hosts = wanted.hosts.map(({ name }) => name);
        job.emit({ type: 'restart', attempt: restarts.done, most: request.maxRestarts, failure: primary, hosts });
        for (const message of next.told) job.emit({ type: 'notice', message });
        now = begin();
        continue;
      }
      const instead = primary === null ? null : restarts.insteadOf(primary);
      if (instead !== null) job.overrule(instead);
      await Promise.race([left.promise, agents.close()]);
      const result = jobResult({ jobId, job, map, policy, phases, restarts: restarts.done });
      job.emit({ type: 'job-ended', ok: result.ok, reason: result.reason, exitCode: result.exitCode });
      await Promise.race([reporter.result(result), left.promise.then(() => farewell())]);
      return result;
    }
  } finally {
    for (const limit of limits) limit.cancel();
    blockSigusr1(true); // without a listener it would end us before the result is told
    signals.remove();
  }
}

function signalActions(job: () => Job, restarts: Restarts, leave: () => void): SignalActions {
  const stopping = new Stopping((ranks) => job().stop(ranks));
  return {
    interrupt() {
      restarts.giveUp();
      job().interrupt();
    },
    terminate(signal) {
      restarts.giveUp();
      job().terminate(signal);
    },
    leave() {
      job().leave();
      leave();
    },
    forward: (signal) => job().forward(signal),
    ignore: (signal) => job().ignore(signal),
    stop: (ranks) => stopping.begin(ranks),
    resume(ranks) {
      stopping.end();
      job().resume(ranks);
    },
  };
}

/** An attempt before anybody is connected to. */
interface Beginning {
  readonly job: Job;
  readonly policy: FailurePolicy;
  readonly memory: GpuMemoryCheck;
}

function beginAttempt(parts: Omit<JobParts, 'policy' | 'xids' | 'memory' | 'hangs'>, hosts: number): Beginning {
  const xids: Xids = new Xids({
    clockAheadMs: (name) => job.hosts.find((host) => host.name === name)?.clockAheadMs ?? 0,
    tell: (xid, at) => job.emit({ type: 'xid', ...xid, at }),
  });
  const policy = new FailurePolicy((failure, time) => xids.complete(failure, time));
  const memory = new GpuMemoryCheck({
    clock: parts.clock,
    tell: (message) => job.emit({ type: 'notice', message }),
  });
  const hangs: HangJudge = new HangJudge({
    hosts: () => job.hosts.filter(({ state }) => state.name === 'running').map(({ name }) => name),
    send: (name, frame) => job.hosts.find((host) => host.name === name)?.send(frame),
    hostOf: (rank) => job.hostOf(rank),
    found(hang) {
      job.emit({ type: 'hang', ...hang });
      if (parts.request.onHang === 'abort' || parts.request.onHang === 'restart') job.fail({ type: 'hang', ...hang });
    },
  });
  const job = new Job({ ...parts, policy, xids, memory, hangs }, hosts);
  return { job, policy, memory };
}

/** --timeout and --spawn-timeout. */
function startLimits(
  { timeoutSeconds, spawnTimeoutSeconds }: JobRequest,
  job: () => Job,
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
    job().fail(failure);
  });
  start(spawnTimeoutSeconds, (seconds) => {
    const late = job().late();
    if (late.length > 0) job().fail({ type: 'spawn-timeout', seconds, late });
  });
  return limits;
}

function farewell(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FAREWELL_MS);
  });
}
