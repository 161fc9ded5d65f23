/** The job's result, once it is over. */
import { mappedRanksByHost } from '../mapping/ranks-by-host.ts';
import type { Failure } from '../model/failure.ts';
import { exitStatus } from '../model/failure-error.ts';
import type { FailurePolicy } from './failure-policy.ts';
import type { Job } from './job.ts';
import type { PhaseClock } from './phase-clock.ts';
import type { Verdict } from '../model/hang.ts';
import type { Recorder } from '../model/recorder.ts';
import { rankResult } from './rank.ts';
import type { HostResult, JobResult, RankMap, RankResult } from '../model/types.ts';

interface ResultParts {
  readonly jobId: string;
  readonly job: Job;
  /** Null if the job ended before its ranks were mapped. */
  readonly map: RankMap | null;
  readonly policy: FailurePolicy;
  readonly phases: PhaseClock;
  readonly restarts: number;
  readonly verdicts: readonly Verdict[];
  readonly recorder: Recorder | null;
}

export function jobResult({ jobId, job, map, policy, phases, restarts, verdicts, recorder }: ResultParts): JobResult {
  const primary = policy.decide();
  const ranks = (map?.ranks ?? []).map(({ rank, host }) =>
    rankResult(rank, map?.hosts[host]?.name ?? 'unknown host', job.ranks[rank] ?? { name: 'waiting' }),
  );
  return {
    schemaVersion: 1,
    jobId,
    ok: primary === null,
    reason: primary?.type ?? 'ok',
    exitCode: primary === null ? 0 : ownStatus(primary, ranks, policy) || exitStatus(primary),
    restarts,
    failures: policy.failures,
    verdicts,
    hosts: hostResults(job, map, policy),
    ranks,
    phases: phases.read(),
    ...(recorder === null ? {} : { recorder }),
  };
}

/** The status with which a rank ended that others lacked, also when it did so after we had asked it to; 0 if none of its own. */
function ownStatus(primary: Failure, ranks: readonly RankResult[], { failures }: FailurePolicy): number {
  if (primary.type !== 'rank-missing') return 0;
  const own = failures.find(
    ({ type, ...end }) => type !== 'rank-missing' && 'rank' in end && end.rank === primary.rank,
  );
  return own === undefined ? (ranks[primary.rank]?.exitCode ?? 0) : exitStatus(own);
}

function hostResults({ hosts }: Job, map: RankMap | null, { failures }: FailurePolicy): HostResult[] {
  const ranks = new Map(map === null ? [] : mappedRanksByHost(map).map((own, index) => [map.hosts[index]?.name, own]));
  const failed = new Set(failures.map((failure) => ('host' in failure ? failure.host : null)));
  return hosts.map(({ name, state }) => ({
    name,
    ranks: (ranks.get(name) ?? []).map(({ rank }) => rank),
    state: state.name === 'lost' ? 'lost' : failed.has(name) ? 'failed' : 'ok',
  }));
}
