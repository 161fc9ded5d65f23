/**
 * The launcher's rendezvous of a whole job: keys that agents cannot complete among their own ranks. It knows keys, hosts and
 * exited ranks; its owner plans the communicators (`join`).
 */
import { steadyClock, type Clock, type Countdown } from '../clock.ts';
import { NcclResult, NO_RANK } from '../messages/bootstrap.ts';
import { decodeCalls } from '../messages/calls.ts';
import { makeFrame } from '../messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../messages/frame.ts';
import type { Frame } from '../messages/frame.ts';
import { areOfOneCommunicator, describeKey } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import { ProtocolError } from '../messages/protocol-error.ts';
import {
  decodeLeft,
  decodeMerged,
  decodeRouted,
  encodeCompleted,
  encodeKeyFailed,
} from '../messages/rendezvous-codec.ts';
import { encodeRouted } from '../messages/rendezvous-codec.ts';
import type { Left, Merged, Routed } from '../messages/rendezvous-codec.ts';
import {
  ENDED_CLEANLY,
  isAlone,
  isShrinkRound,
  isSplitRound,
  JOIN_ROUND,
  LeftHow,
  NAMES_JOB_RANK,
  POST_ROUND,
  ROUTED_WANTED,
} from '../messages/rendezvous.ts';
import { Collector } from './collector.ts';
import type { PendingGather } from './collector.ts';
import { describeDesertion, describeRank } from './failure.ts';
import type { RendezvousFailure } from './failure.ts';
import type { Gone } from './leavers.ts';
import { ownBytes } from './memory.ts';
import { LateWatch } from './late.ts';
import type { LateReport } from './late.ts';
import { LiveCommunicators } from './live.ts';
import type { CallsAt } from './live.ts';
import { Mailbox } from './mailbox.ts';
import { describeMismatch } from './mismatch.ts';
import { Roster } from './roster.ts';
import { contributionsByRank, desertion, failsWithCommunicator, inUse, resultOf } from './rules.ts';
import { joinOf, splitParts } from './split.ts';
import { messageOf } from '../message-of.ts';

interface HubOptions {
  readonly epoch: number;
  /** Names by host index. */
  readonly hostNames: readonly string[];
  /** Host index by rank of the job. */
  readonly rankHosts: readonly number[];
  send(host: number, frame: Frame): void;
  /** Called when all ranks have joined: sends each host its part of the plan. Throws an Error with the reason if there is no plan. */
  join(gather: PendingGather): void;
  late(report: LateReport): void;
  /** Called when a rank exited for which others wait; `message` names the ranks and the key. */
  missing(rank: number, message: string): void;
  /** Called before a rank's exit: it failed after it had lost `suspect`, whose own exit the launcher may not know yet. */
  suspected(rank: number, suspect: number): void;
  /** Called when a rank left a communicator that others may need without a failure of its own; `message` serves if another rank fails for it. */
  departed(rank: number, message: string): void;
  /** Waiting time of a key after which a report names its missing ranks. */
  readonly lateAfterMs?: number;
  /** Called when a key has waited for `initTimeoutMs`. */
  timedOut(report: LateReport): void;
  /** Null if a key may wait for ever. */
  readonly initTimeoutMs: number | null;
  /** Default: the steady clock. */
  readonly clock?: Clock;
}

/** Grace time of a key that cannot complete any more, because messages of exited ranks may still be in transit. */
const DOOMED_GRACE_MS = 250;
const LATE_AFTER_MS = 10_000;
/** Maximum of live communicators per host. */
const MAX_LIVE = 16_384;
/** Maximum of refused messages: a sender that continues after so many refusals ignores them. */
const MAX_REFUSED = 1000;
/** Maximum bytes of a table, which is one frame; the rest of the frame holds its lengths and the key. */
const MAX_TABLE_BYTES = 15 * 1024 * 1024;

export class Hub {
  readonly #options: HubOptions;
  readonly #clock: Clock;
  readonly #collector: Collector;
  readonly #live: LiveCommunicators;
  readonly #roster: Roster;
  readonly #late: LateWatch;
  readonly #limit: LateWatch | null;
  readonly #mailbox = new Mailbox<number>();
  /** Ranks whose absence made others fail; each is reported once. */
  readonly #blamed = new Set<number>();
  #doomTimer: Countdown | null = null;
  /** Number of messages refused for want of memory. */
  #refusedMessages = 0;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    const hostName = (host: number): string => options.hostNames[host] ?? `host ${host}`;
    this.#collector = new Collector({ epoch: options.epoch, hostName, clock: this.#clock });
    this.#live = new LiveCommunicators(
      (host, frame) => options.send(host, frame),
      (jobRank) => options.rankHosts[jobRank],
      hostName,
    );
    this.#roster = new Roster(options.rankHosts, hostName);
    const { lateAfterMs, initTimeoutMs } = options;
    this.#late = this.#watchWaits(lateAfterMs ?? LATE_AFTER_MS, (late) => options.late(late));
    this.#limit = initTimeoutMs === null ? null : this.#watchWaits(initTimeoutMs, (late) => options.timedOut(late));
  }

  /** Processes an agent's frame. @throws ProtocolError if it is malformed */
  receive(host: number, frame: Frame): void {
    switch (frame.kind) {
      case FrameKind.merged:
        return this.#merged(host, decodeMerged(ownBytes(frame.payload)));
      case FrameKind.left:
        return this.#left(host, decodeLeft(frame.payload), frame.flags, frame.subject);
      case FrameKind.calls:
        return this.#calls(host, decodeCalls(frame.payload));
      case FrameKind.routed:
        return this.#routed(host, decodeRouted(frame.payload), (frame.flags & ROUTED_WANTED) !== 0);
      default:
        return undefined;
    }
  }

  /** Records the exit of a rank of the job; `sentence` describes it. */
  rankEnded(rank: number, sentence: string): void {
    this.#roster.end(rank, sentence);
    for (const gather of this.#collector.waiting()) {
      if ([...gather.entries.values()].some((entry) => entry.jobRank === rank)) {
        this.#fail(gather.key, {
          result: NcclResult.remoteError,
          sentence: `${sentence} while others waited in ${describeKey(gather.key)}`,
        });
        this.#options.missing(rank, `${sentence} while others waited in ${describeKey(gather.key)}`);
      }
    }
    this.#settleAllGone();
    this.#watchDoomed();
  }

  /** Records the loss of a host; `phrase` follows the name of each of its ranks: "was on node1, which was lost". */
  hostLost(host: number, phrase: string): void {
    const first = this.#options.rankHosts.indexOf(host);
    const failure = { result: NcclResult.remoteError, sentence: `rank ${first} ${phrase}` };
    this.#live.hostLost(host, failure);
    for (const gather of this.#collector.waiting()) {
      if (gather.hosts.has(host)) this.#fail(gather.key, failure);
    }
    this.#mailbox.dropWaiters((waiter) => waiter === host);
    this.#roster.endHost(host, phrase);
    this.#settleAllGone();
    this.#watchDoomed();
  }

  close(): void {
    this.#late.close();
    this.#limit?.close();
    this.#doomTimer?.cancel();
  }

  /** Number of pending keys and live communicators; 0 after the last has ended. */
  get size(): number {
    return this.#collector.waiting().length + this.#live.size;
  }

  #merged(host: number, { key, size, entries }: Merged): void {
    const { rankHosts } = this.#options;
    const foreign = entries.find(({ jobRank }) => (rankHosts[jobRank] ?? host) !== host);
    if (foreign !== undefined)
      throw new ProtocolError(`a contribution of rank ${foreign.jobRank}, which does not run there`);
    const live = this.#live.countOn(host);
    if (live > MAX_LIVE) throw new ProtocolError(`contributions to more than ${MAX_LIVE} communicators at a time`);
    const broken = failsWithCommunicator(key) ? this.#live.failureOf(key) : undefined;
    for (const entry of entries) {
      if (broken !== undefined) return this.#sendFailure(host, key, broken);
      const outcome = this.#collector.add(key, size, { ...entry, host });
      switch (outcome.type) {
        case 'waiting':
          break;
        case 'complete':
          this.#complete(outcome.gather);
          break;
        case 'failed':
          for (const concerned of outcome.gather?.hosts ?? [host]) this.#sendFailure(concerned, key, outcome.failure);
          break;
        default:
          outcome satisfies never;
      }
    }
    const waiting = this.#collector.get(key);
    if (waiting === undefined || this.#settleGone(waiting) || this.#failDeserted(waiting)) return undefined;
    this.#late.watch();
    this.#limit?.watch();
    return this.#watchDoomed();
  }

  #complete(gather: PendingGather): void {
    const { key, size, entries, hosts } = gather;
    if (key.round === JOIN_ROUND) return this.#join(gather);
    let bytes = 0;
    for (const entry of entries.values()) bytes += entry.bytes.length + 4;
    if (bytes > MAX_TABLE_BYTES) {
      const sentence = `${size} ranks gather ${bytes} bytes in ${describeKey(key)}, at most ${MAX_TABLE_BYTES} are possible`;
      for (const host of hosts) this.#sendFailure(host, key, { result: NcclResult.invalidUsage, sentence });
      return undefined;
    }
    const table = contributionsByRank(gather);
    const frame = makeFrame(FrameKind.completed, { payload: encodeCompleted(key, table) });
    for (const host of hosts) this.#options.send(host, frame);
    if (!isSplitRound(key.round)) return undefined;
    for (const part of splitParts(key, table)) this.#join(joinOf(part, gather));
    return undefined;
  }

  #join(gather: PendingGather): void {
    const { key, hosts } = gather;
    try {
      if (this.#live.has(key)) throw new Error(inUse(key));
      this.#options.join(gather);
      this.#live.add(gather);
    } catch (error) {
      const sentence = messageOf(error);
      for (const host of hosts) this.#sendFailure(host, key, { result: NcclResult.invalidUsage, sentence });
    }
  }

  #left(host: number, left: Left, flags: number, blame: number): void {
    const cleanly = (flags & ENDED_CLEANLY) !== 0;
    const { key, rank, how, reason } = left;
    const { length: ranks } = this.#options.rankHosts;
    if (how === LeftHow.missed) {
      if (blame >= ranks || this.#blamed.has(blame)) return;
      this.#blamed.add(blame);
      this.#options.missing(blame, reason);
      return;
    }
    if (how === LeftHow.suspected) {
      const suspect = (flags & NAMES_JOB_RANK) === 0 ? this.#live.jobRankOf(key, rank) : rank;
      if (suspect >= 0 && suspect < ranks && blame < ranks) this.#options.suspected(blame, suspect);
      return;
    }
    if (how === LeftHow.finalized) {
      if (rank !== ALL_RANKS)
        return this.#gone(key, rank, { result: NcclResult.invalidUsage, sentence: reason, blame });
      if (this.#live.hostFinished(key, host)) this.#mailbox.end(key.id, key.epoch);
      for (const gather of this.#collector.waiting())
        if (areOfOneCommunicator(gather.key, key)) this.#failDeserted(gather);
      return;
    }
    if (blame < ranks) this.#options.departed(blame, how === LeftHow.died ? `${reason}; others waited for it` : reason);
    const failure = { result: resultOf(how), sentence: reason };
    if (isAlone(how) && key.round === JOIN_ROUND) return this.#gone(key, rank, { ...failure, blame });
    if (this.#collector.get(key) !== undefined) this.#fail(key, failure);
    else if (this.#live.break(key, host, { rank, failure, cleanly, blame })) this.#failRounds(key, failure);
  }

  /** Records that a rank is gone from a communicator that others keep using. */
  #gone(key: Key, rank: number, gone: Gone): void {
    this.#live.rankGone(key, rank, gone);
    for (const waiting of this.#collector.waiting()) {
      if (areOfOneCommunicator(waiting.key, key) && !this.#settleGone(waiting)) this.#failDeserted(waiting);
    }
  }

  #calls(host: number, { key, all }: ReturnType<typeof decodeCalls>): void {
    const mismatch = this.#live.compare(key, host, all);
    if (mismatch === null) return this.#live.await(key, host, all);
    const name = ({ rank, pid, host: at }: CallsAt): string =>
      describeRank(rank, this.#options.hostNames[at] ?? `host ${at}`, pid);
    const failure = { result: NcclResult.invalidUsage, sentence: describeMismatch(mismatch, name) };
    this.#live.break(key, null, { rank: NO_RANK, failure, cleanly: false, blame: ALL_RANKS });
    this.#failRounds(key, failure);
  }

  #routed(host: number, message: Routed, wanted: boolean): void {
    if (wanted) {
      const bytes = this.#mailbox.fetch(message, host);
      if (bytes === 'full') this.#refuse(host, message.key);
      else if (bytes !== 'waiting') this.#deliver(host, message, bytes);
      return;
    }
    const outcome = this.#mailbox.post(message, message.bytes);
    if (outcome === 'stored') return;
    if (outcome === 'full') this.#refuse(host, message.key);
    else this.#deliver(outcome.waiter, message, message.bytes);
  }

  #refuse(host: number, of: Key): void {
    this.#refusedMessages += 1;
    if (this.#refusedMessages > MAX_REFUSED) throw new ProtocolError('messages without end, which nobody fetches');
    const key = { ...of, round: POST_ROUND };
    const sentence = `too many messages lie unfetched under ${describeKey(key)}`;
    this.#sendFailure(host, key, { result: NcclResult.invalidUsage, sentence });
  }

  #deliver(host: number, message: Routed, bytes: Uint8Array): void {
    this.#options.send(host, makeFrame(FrameKind.routed, { payload: encodeRouted({ ...message, bytes }) }));
  }

  /** Fails the gathers and messages of a broken communicator. Its shrinks continue, unless they need an exited rank (#watchDoomed). */
  #failRounds(key: Key, failure: RendezvousFailure): void {
    for (const { key: waiting } of this.#collector.waiting()) {
      if (areOfOneCommunicator(waiting, key) && failsWithCommunicator(waiting)) this.#fail(waiting, failure);
    }
    this.#mailbox.end(key.id, key.epoch);
  }

  #fail(key: Key, failure: RendezvousFailure): void {
    const gather = this.#collector.fail(key, failure);
    for (const host of gather?.hosts ?? []) this.#sendFailure(host, key, failure);
  }

  #sendFailure(host: number, key: Key, failure: RendezvousFailure): void {
    this.#options.send(host, makeFrame(FrameKind.keyFailed, { payload: encodeKeyFailed({ key, ...failure }) }));
  }

  /** Fails a round that waits for a rank gone from the communicator, or a split that waits for a host where all ranks have finalized it. */
  #failDeserted({ key, entries, leftOut, withoutGone }: PendingGather): boolean {
    const { rankHosts, hostNames } = this.#options;
    const there = new Set([...entries.keys(), ...leftOut]);
    const deserted = desertion(key, withoutGone ? [] : this.#live.goneFrom(key), (rank) => !there.has(rank));
    if (deserted !== null) {
      this.#fail(key, deserted.failure);
      return true;
    }
    if (!isSplitRound(key.round)) return false;
    const rank = this.#live.leaverBeside(key, there);
    if (rank === null) return false;
    const host = rankHosts[this.#live.jobRankOf(key, rank)] ?? -1;
    const who = `rank ${rank} (${hostNames[host] ?? `host ${host}`})`;
    this.#fail(key, { result: NcclResult.invalidUsage, sentence: describeDesertion(who, key) });
    return true;
  }

  /** Ranks of the job for which a shrink waits, as far as the hub remembers the communicator. */
  #neededFor({ key, size, entries, leftOut }: PendingGather): number[] {
    if (!isShrinkRound(key.round)) return [];
    const settled = new Set([...entries.keys(), ...leftOut]);
    const needed: number[] = [];
    for (let rank = 0; rank < size; rank++) {
      const jobRank = settled.has(rank) ? -1 : this.#live.jobRankOf(key, rank);
      if (jobRank >= 0) needed.push(jobRank);
    }
    return needed;
  }

  #settleAllGone(): void {
    for (const gather of this.#collector.waiting()) this.#settleGone(gather);
  }

  /** Completes a key that excludes gone ranks once it waits for no other; returns whether it did. */
  #settleGone({ key, withoutGone }: PendingGather): boolean {
    if (!withoutGone) return false;
    const complete = this.#collector.completeWithout(
      key,
      (rank) => this.#live.isLost(key, rank) || this.#roster.isOver(this.#live.jobRankOf(key, rank)),
    );
    if (complete !== null) this.#complete(complete);
    return complete !== null;
  }

  #isDoomed(gather: PendingGather): boolean {
    if (gather.withoutGone) return false;
    return this.#roster.isDoomed(gather, this.#neededFor(gather));
  }

  #watchDoomed(): void {
    if (this.#doomTimer !== null || !this.#roster.anyOver) return; // Runs for every message, so the cheap test comes first.
    if (!this.#collector.waiting().some((one) => this.#isDoomed(one))) return;
    this.#doomTimer = this.#clock.after(DOOMED_GRACE_MS, () => {
      this.#doomTimer = null;
      for (const gather of this.#collector.waiting()) {
        if (!this.#isDoomed(gather)) continue;
        const doom = this.#roster.describeDoom(gather, this.#neededFor(gather));
        this.#fail(gather.key, { result: NcclResult.remoteError, sentence: doom.sentence });
        this.#options.missing(doom.rank, doom.sentence);
      }
    });
  }

  #watchWaits(afterMs: number, report: (late: LateReport) => void): LateWatch {
    return new LateWatch(
      this.#clock,
      afterMs,
      () => this.#collector.waiting(),
      (gather, seconds) => report({ what: describeKey(gather.key), ...this.#roster.missingFrom(gather), seconds }),
    );
  }
}
