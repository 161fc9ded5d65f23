/**
 * The attempts of a job, one after the other.
 *
 *   attempt under way ── over: no failure, or one that no restart mends ──► finishing ──► result
 *     ▲           └────── over: a failure that a restart may mend ──┐
 *     └──────────────────── the next attempt's hosts are chosen ◄───┘
 */
import type { KeptAgents } from '../remote/kept-agents.ts';
import type { Failure } from '../model/failure.ts';
import type { Verdict } from '../model/hang.ts';
import type { Recorder } from '../model/recorder.ts';
import type { StackReport } from '../model/stack.ts';
import { jobStatus } from '../hang/status.ts';
import type { JobStatus } from '../model/status.ts';
import type { JobResult, RankMap } from '../model/types.ts';
import { startRanks, type AttemptParts } from './attempt.ts';
import { HostPool } from './host-pool.ts';
import type { Job } from './job.ts';
import type { Restarts } from './restarts.ts';
import { jobResult } from './result.ts';
import { type WiredJob, wireJob } from './wire-job.ts';

/** After the user has left, a slow reader of the output delays the end for this long at most. */
const GOODBYE_MS = 1000;

interface JobAttemptsOptions extends AttemptParts {
  readonly restarts: Restarts;
  readonly agents: KeptAgents;
  /** Where the ranks run; null where that depends on what the hosts report. */
  readonly early: RankMap | null;
  /** The hosts that ranks may move to; null where `early` is. */
  readonly pool: HostPool | null;
}

export class JobAttempts {
  readonly #options: JobAttemptsOptions;
  readonly #hostCount: number;
  readonly #left = Promise.withResolvers<void>();
  #current: WiredJob;
  /** Where the ranks of the attempt under way are to run; null as in `early`. */
  #wanted: RankMap | null;
  #pool: HostPool | null;
  /** What was recorded when an attempt before this one failed. */
  #recorder: Promise<Recorder> | null = null;
  /** Those of the attempts before this one. */
  readonly #verdicts: Verdict[] = [];

  constructor(options: JobAttemptsOptions) {
    this.#options = options;
    this.#wanted = options.early;
    this.#pool = options.pool;
    this.#hostCount = this.#hosts.length;
    this.#current = wireJob(options, this.#hostCount);
  }

  /** The attempt under way, or the last one. */
  get job(): Job {
    return this.#current.job;
  }

  /** What the ranks have recorded so far. */
  recorder(): Promise<Recorder> {
    return this.#current.recorders.read([]);
  }

  /** Of all ranks for null. */
  stacks(ranks: readonly number[] | null): Promise<StackReport> {
    return this.#current.stacks.read(ranks);
  }

  /** How the ranks fare. */
  async status(): Promise<JobStatus> {
    const { job, positions, verdicts } = this.#current;
    const [first, second] = await positions.readTwice();
    return jobStatus(first, second, {
      ranks: job.ranks.length,
      takenAt: Date.now(),
      verdicts: [...this.#verdicts, ...verdicts.all],
    });
  }

  /** The user waits for nobody any more. */
  leave(): void {
    this.#left.resolve();
  }

  /** Resolves after the reporter has taken the result. Called once. */
  async run(): Promise<JobResult> {
    for (;;) {
      const map = await this.#attempt();
      const primary = this.#current.policy.decide();
      if (!this.#restarts(primary, map)) return await this.#finish(primary, map);
    }
  }

  get #hosts(): AttemptParts['allocation']['hosts'] {
    return this.#wanted?.hosts ?? this.#options.allocation.hosts;
  }

  /** One attempt to its end. Null if it ended before there was a map. */
  async #attempt(): Promise<RankMap | null> {
    const { job, memory } = this.#current;
    const { restarts } = this.#options;
    const map = await startRanks({
      ...this.#options,
      job,
      memory,
      epoch: restarts.done,
      early: this.#wanted,
      asked: this.#hosts,
      spares: this.#pool?.spares.slice(0, restarts.left) ?? [],
    });
    await Promise.race([this.#left.promise, job.over.then(() => job.close())]);
    return map;
  }

  /** True: another attempt is wired, on the hosts that are left. */
  #restarts(primary: Failure | null, map: RankMap | null): boolean {
    const { request, allocation, restarts } = this.#options;
    if (map === null) return false;
    const pool = (this.#pool ??= new HostPool(request, allocation.hosts, map));
    if (primary === null || !restarts.another(primary, pool.replaces(primary, map))) return false;
    const { job, policy } = this.#current;
    const next = pool.next({ primary, failures: policy.failures, lostSpares: job.lostSpares }, map);
    this.#wanted = next.map;
    const hosts = next.map.hosts.map(({ name }) => name);
    job.emit({ type: 'restart', attempt: restarts.done, limit: request.maxRestarts, failure: primary, hosts });
    for (const message of next.notices) job.emit({ type: 'notice', message });
    this.#recorder = this.#current.recorders.taken ?? this.#recorder;
    this.#verdicts.push(...this.#current.verdicts.all);
    this.#current = wireJob(this.#options, this.#hostCount);
    return true;
  }

  async #finish(primary: Failure | null, map: RankMap | null): Promise<JobResult> {
    const { jobId, phases, reporter, restarts, agents } = this.#options;
    const { job, policy } = this.#current;
    const instead = primary === null ? null : restarts.insteadOf(primary);
    if (instead !== null) job.failures.overrule(instead);
    await Promise.race([this.#left.promise, agents.close()]);
    const recorder = await Promise.race([
      this.#left.promise.then(() => null),
      this.#current.recorders.taken ?? this.#recorder,
    ]);
    const verdicts = [...this.#verdicts, ...this.#current.verdicts.all];
    const result = jobResult({ jobId, job, map, policy, phases, restarts: restarts.done, verdicts, recorder });
    job.emit({ type: 'job-ended', ok: result.ok, reason: result.reason, exitCode: result.exitCode });
    await Promise.race([reporter.result(result), this.#left.promise.then(() => goodbye())]);
    return result;
  }
}

function goodbye(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, GOODBYE_MS);
  });
}
