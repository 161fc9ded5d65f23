/** The errors that GPUs of a job have reported to their drivers (NVIDIA's Xids), and those that may be behind a failure. */
import type { Xid } from '../../control/messages/gpu.ts';
import type { HostXid, XidBefore } from '../model/xid.ts';
import type { Failure } from '../model/failure.ts';
import type { Host } from './host.ts';
import type { JobState } from './job-parts.ts';

/** Named with a failure; a GPU that is broken may have said more. */
const MAX_NAMED = 4;
/** Of all hosts; what is older is forgotten. */
const MAX_KEPT = 10_000;
/** Hosts' clocks differ, and the kernel's log lags a little. */
const SLACK_MS = 500;

interface XidsOptions {
  /** By how much that host's clock is ahead of ours. */
  clockAheadMs(host: string): number;
  /** `at`: when, by our clock. */
  report(xid: HostXid, at: number): void;
}

export class Xids {
  readonly #options: XidsOptions;
  readonly #all: { readonly xid: HostXid; readonly at: number }[] = [];

  constructor(options: XidsOptions) {
    this.#options = options;
  }

  /** A host's report. What GPUs say of ranks that we have begun to end is our doing. */
  receive(host: Pick<Host, 'name' | 'clockAheadMs'>, report: Xid, job: JobState): void {
    const { code, gpu, address, ranks, pid, message } = report;
    const at = report.time - host.clockAheadMs;
    const isOurs = job.name === 'stopping' && at >= job.since;
    if (isOurs || job.name === 'teardown' || job.name === 'over') return;
    const xid = { host: host.name, code, gpu, address, ranks, pid, message };
    this.#all.push({ xid, at });
    if (this.#all.length > MAX_KEPT) this.#all.shift();
    this.#options.report(xid, at);
  }

  /** `time`: as the policy has it, by the clock of its host for what ranks did. */
  complete(failure: Failure, time: number): Failure {
    switch (failure.type) {
      case 'rank-exit':
      case 'rank-signal':
        return { ...failure, ...this.#before(time - this.#options.clockAheadMs(failure.host), failure.rank) };
      case 'rank-missing':
        return { ...failure, ...this.#before(time, failure.rank) };
      case 'host-lost':
      case 'hang':
        return { ...failure, ...this.#before(time, null) };
      default:
        return failure;
    }
  }

  /** Of the rank's own GPU from the first on, then what came shortly before elsewhere. */
  #before(time: number, rank: number | null): { xids?: readonly XidBefore[] } {
    const before = this.#all.filter(({ at }) => at <= time + SLACK_MS);
    const own = before.filter(({ xid }) => rank !== null && xid.ranks.includes(rank));
    const others = before.filter((one) => !own.includes(one)).toReversed();
    const chosen = [...own, ...others].slice(0, MAX_NAMED);
    if (chosen.length === 0) return {};
    const seconds = (at: number): number => Math.max(0, Math.round((time - at) / 100) / 10);
    return { xids: chosen.map(({ xid, at }) => ({ ...xid, secondsBefore: seconds(at) })) };
  }
}
