/** The launcher's record of live communicators, from the plan until every rank has left: their hosts and ranks. */
import { NcclResult } from '../messages/bootstrap.ts';
import type { Calls } from '../messages/calls.ts';
import { ALL_RANKS, FrameKind } from '../messages/frame.ts';
import type { Frame } from '../messages/frame.ts';
import { makeFrame } from '../messages/codec.ts';
import { communicatorKeyName } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import { encodeBroken } from '../messages/rendezvous-codec.ts';
import { ENDED_CLEANLY, JOIN_ROUND, RANK_GONE } from '../messages/rendezvous.ts';
import type { PendingGather } from './collector.ts';
import type { RendezvousFailure } from './failure.ts';
import { Leavers, type Gone } from './leavers.ts';
import { CallComparison } from './mismatch.ts';
import type { Mismatch } from './mismatch.ts';
import { RecentMap } from './memory.ts';

const REMEMBERED_FAILURES = 256;

/** Rank in the job by rank of the communicator, -1 if unknown; null if both are equal. */
type JobRanks = Int32Array | null;

interface Live {
  readonly key: Key;
  readonly ranks: number;
  readonly jobRanks: JobRanks;
  /** Hosts that have not finished. */
  readonly hosts: Set<number>;
  /** Hosts that have finished. */
  readonly finished: Set<number>;
  readonly calls: CallComparison<CallsAt>;
  readonly leavers: Leavers;
}

export interface CallsAt extends Calls {
  readonly host: number;
}

/** Failure of a communicator and the rank that caused it. */
interface Breach {
  readonly rank: number;
  readonly failure: RendezvousFailure;
  readonly cleanly: boolean;
  readonly blame: number;
}

export class LiveCommunicators {
  readonly #send: (host: number, frame: Frame) => void;
  readonly #hostOf: (jobRank: number) => number | undefined;
  readonly #hostName: (host: number) => string;
  readonly #live = new Map<string, Live>();
  /** Number of unfinished communicators by host. */
  readonly #counts = new Map<number, number>();
  readonly #broken = new RecentMap<{ readonly failure: RendezvousFailure; readonly jobRanks: JobRanks }>(
    REMEMBERED_FAILURES,
  );

  /** `hostOf` returns the host of a rank of the job. */
  constructor(
    send: (host: number, frame: Frame) => void,
    hostOf: (jobRank: number) => number | undefined,
    hostName: (host: number) => string,
  ) {
    this.#send = send;
    this.#hostOf = hostOf;
    this.#hostName = hostName;
  }

  get size(): number {
    return this.#live.size;
  }

  /** Number of communicators that the host has not left. */
  countOn(host: number): number {
    return this.#counts.get(host) ?? 0;
  }

  #count(host: number, change: number): void {
    this.#counts.set(host, this.countOn(host) + change);
  }

  add({ key, hosts, entries, size }: PendingGather): void {
    for (const host of hosts) this.#count(host, 1);
    this.#live.set(communicatorKeyName(key), {
      key,
      ranks: size,
      jobRanks: jobRanksOf(entries, size),
      hosts: new Set(hosts),
      finished: new Set(),
      calls: new CallComparison(),
      leavers: new Leavers(),
    });
  }

  /** Rank in the job of a rank of a communicator that is live or broke lately; -1 if unknown. */
  jobRankOf(key: Key, rank: number): number {
    const name = communicatorKeyName(key);
    const known = this.#live.get(name) ?? this.#broken.get(name);
    if (known === undefined) return -1;
    return known.jobRanks === null ? rank : (known.jobRanks[rank] ?? -1);
  }

  /** True if the communicator of `key` is live, whatever the key's round. */
  has(key: Key): boolean {
    return this.#live.has(communicatorKeyName(key));
  }

  /** Failure of the communicator of this id, if it broke lately. */
  failureOf(key: Key): RendezvousFailure | undefined {
    return this.#broken.get(communicatorKeyName(key))?.failure;
  }

  /** Records the calls of ranks on `host`; returns their mismatch with other ranks' calls, or null. */
  compare(key: Key, host: number, all: readonly Calls[]): Mismatch<CallsAt> | null {
    return this.#live.get(communicatorKeyName(key))?.calls.add(all.map((calls) => ({ ...calls, host }))) ?? null;
  }

  /** A rank that has left the communicator, on a host where all have left, and that is not among `there`; null if none. */
  leaverBeside(key: Key, there: ReadonlySet<number>): number | null {
    const live = this.#live.get(communicatorKeyName(key));
    if (live === undefined || live.finished.size === 0) return null;
    for (let rank = 0; rank < live.ranks; rank++) {
      const host = this.#hostOfRank(live, rank);
      if (host !== undefined && live.finished.has(host) && !there.has(rank)) return rank;
    }
    return null;
  }

  /** Records that every rank of a host has left. Returns true if it was the last host. */
  hostFinished(key: Key, host: number): boolean {
    const live = this.#live.get(communicatorKeyName(key));
    if (live?.hosts.delete(host) === true) {
      live.finished.add(host);
      this.#count(host, -1);
      for (const rank of live.leavers.awaited(live.ranks))
        if (this.#hostOfRank(live, rank) === host) this.#notifyGone(live, rank);
    }
    if (live === undefined || live.hosts.size > 0) return false;
    return this.#live.delete(communicatorKeyName(key));
  }

  /**
   * Breaks a communicator because of a rank on `host`, or of none in particular (null): the other hosts raise their abort words. `cleanly`: the
   * rank's process exited with status 0, so only stalled ranks fail and pending operations may complete. `blame`: its rank in the job, or
   * ALL_RANKS. Returns false if there is no such communicator.
   */
  break(key: Key, host: number | null, { rank, failure, cleanly, blame }: Breach): boolean {
    const live = this.#live.get(communicatorKeyName(key));
    if (live === undefined) return false;
    this.#broken.set(communicatorKeyName(key), { failure, jobRanks: live.jobRanks });
    if (!cleanly) {
      this.#live.delete(communicatorKeyName(key));
      for (const one of live.hosts) this.#count(one, -1);
    }
    const frame = makeFrame(FrameKind.broken, {
      subject: blame,
      flags: cleanly ? ENDED_CLEANLY : 0,
      payload: encodeBroken({ key: { ...key, round: JOIN_ROUND }, rank, ...failure }),
    });
    for (const other of live.hosts) if (other !== host) this.#send(other, frame);
    return true;
  }

  /** Records a departure that others outlive, and notifies the hosts whose ranks wait for that rank. */
  rankGone(key: Key, rank: number, gone: Gone): void {
    const live = this.#live.get(communicatorKeyName(key));
    if (live === undefined || rank >= live.ranks) return;
    for (const host of live.leavers.add(rank, gone)) this.#send(host, goneFrame(live.key, rank, gone));
  }

  /** Records that ranks of `host` have stalled, and notifies the host if they wait for a gone rank. */
  await(key: Key, host: number, all: readonly Calls[]): void {
    const live = this.#live.get(communicatorKeyName(key));
    if (live === undefined) return;
    for (const rank of live.leavers.await(host, all, live.ranks)) {
      const gone = this.#goneOf(live, rank);
      if (gone !== null) this.#send(host, goneFrame(live.key, rank, gone));
    }
  }

  goneFrom(key: Key): ReadonlyMap<number, Gone> {
    return this.#live.get(communicatorKeyName(key))?.leavers.all ?? new Map();
  }

  /** True if the rank left with a failure. */
  isLost(key: Key, rank: number): boolean {
    return this.#live.get(communicatorKeyName(key))?.leavers.get(rank)?.result === NcclResult.remoteError;
  }

  #notifyGone(live: Live, rank: number): void {
    const gone = this.#goneOf(live, rank);
    if (gone === null) return;
    for (const host of live.leavers.awaiting(rank)) this.#send(host, goneFrame(live.key, rank, gone));
  }

  /** Departure of a rank, also of one on a host that all ranks have left. */
  #goneOf(live: Live, rank: number): Gone | null {
    const known = live.leavers.get(rank);
    if (known !== undefined) return known;
    const host = this.#hostOfRank(live, rank);
    if (host === undefined || !live.finished.has(host)) return null;
    return { result: NcclResult.invalidUsage, sentence: `rank ${rank} (${this.#hostName(host)})`, blame: ALL_RANKS };
  }

  #hostOfRank({ jobRanks }: Live, rank: number): number | undefined {
    return this.#hostOf(jobRanks === null ? rank : (jobRanks[rank] ?? -1));
  }

  hostLost(host: number, failure: RendezvousFailure): void {
    for (const { key, hosts } of Array.from(this.#live.values())) {
      if (hosts.has(host)) this.break(key, host, { rank: ALL_RANKS, failure, cleanly: false, blame: ALL_RANKS });
    }
  }
}

function goneFrame(key: Key, rank: number, { result, sentence, blame }: Gone): Frame {
  const payload = encodeBroken({ key: { ...key, round: JOIN_ROUND }, rank, result, sentence });
  return makeFrame(FrameKind.broken, { subject: blame, flags: RANK_GONE, payload });
}

function jobRanksOf(entries: PendingGather['entries'], size: number): JobRanks {
  const jobRanks = new Int32Array(size).fill(-1);
  let same = true;
  for (const { rank, jobRank } of entries.values()) {
    jobRanks[rank] = jobRank;
    same &&= jobRank === rank;
  }
  return same ? null : jobRanks;
}
