/**
 * The communicators that ranks of this host take part in. Each owns its host segment; it is forgotten when the last local rank has left.
 *
 *   live ── a rank dies ──► broken (abort flag raised, ranks notified)
 *     └──── a rank's process ends with status 0 ──► deserted: broken once another rank stalls
 *
 * A rank that leaves, or aborts it once it is set up, breaks nothing: those who wait for it, now or later, fail (`gone`).
 */
import { encodeAborted, encodePeerGone, encodePlanAnswer } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult, NO_RANK } from '../../control/messages/bootstrap.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { communicatorKeyName, describeKey, keyName } from '../../control/messages/key.ts';
import type { Key } from '../../control/messages/key.ts';
import { encodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { ENDED_CLEANLY, isAlone, LeftHow } from '../../control/messages/rendezvous.ts';
import type { CommunicatorName, LeftBehind, NicPair } from '../../control/messages/hang.ts';
import { decodeSegmentOf, receivingNics } from '../../control/plan/decode.ts';
import { describeRank } from '../../control/rendezvous/failure.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import { type Gone, Leavers } from '../../control/rendezvous/leavers.ts';
import type { Native } from '../engine/native.ts';
import { readCalls } from './calls.ts';
import type { ReadCalls } from './calls.ts';
import { CallWatch } from './call-watch.ts';
import type { Breach, Communicator, Departure } from './communicator.ts';
import { type Requester, blamed, type Engine, type EngineChannel } from './engine.ts';
import type { BlameRecord } from './blame-records.ts';
import { communicatorName, lostPeer } from './telemetry.ts';
import { isStalled } from './stall.ts';

/** How often a deserted communicator is looked at. */
const DESERTED_CHECK_MS = 250;
/** A rank that left says so by another socket than those that miss it. */
const LEAVER_MS = 50;

interface CommunicatorsOptions {
  readonly hostName: string;
  readonly native: Native;
  readonly channel: EngineChannel;
  sendUp(frame: Frame): void;
  /** The last local rank has left. */
  ended(key: Key, failure: RendezvousFailure): void;
  /** A rank of the job lacks another now. */
  recordBlame(jobRank: number, record: BlameRecord, at: number): void;
  /** The ranks' calls differ, and they are about to be told so. */
  differ?(communicator: CommunicatorName, sentence: string): void;
  /** A rank waits for one that has left in order; called once for each that has. */
  leftBehind?(left: LeftBehind): void;
  /** A rank of the job has left, whole or broken. */
  left(jobRank: number, key: Key): void;
}

export class Communicators {
  readonly #options: CommunicatorsOptions;
  readonly #live = new Map<string, Communicator>();
  readonly #watch: CallWatch<Communicator>;

  constructor(options: CommunicatorsOptions) {
    this.#options = options;
    this.#watch = new CallWatch({
      hostName: options.hostName,
      communicators: () => this.#live.values(),
      sendUp: (frame) => options.sendUp(frame),
      differ: (communicator, sentence) => this.#differ(communicator, sentence),
      stalled: (communicator, waiter, rank) => this.#notifyGone(communicator, waiter.rank, rank, waiter),
      checked: (communicator) => this.#reportFinalized(communicator),
    });
  }

  get size(): number {
    return this.#live.size;
  }

  has(key: Key): boolean {
    return this.#find(key) !== undefined;
  }

  /** Creates the segment and answers every local rank. Throws the system's error if memory is short. */
  begin(key: Key, hostPlan: Uint8Array, requesters: readonly Requester[], wide: boolean): void {
    const { native, channel } = this.#options;
    const { segmentBytes, abortOffset, doorbellOffset, localRanks, ranks } = decodeSegmentOf(hostPlan);
    const segment = native.segmentCreate(segmentBytes);
    const members = new Map(requesters.map(({ rank, engine }) => [rank, { rank, engine }]));
    const memory = { segment, abortOffset, doorbellOffset, localRanks };
    this.#live.set(keyName(key), {
      key,
      members,
      finalized: new Map(),
      leavers: new Map(),
      missed: new Set(),
      unclear: null,
      departed: new Map(),
      gone: new Leavers(),
      reportedGone: new Set(),
      suspected: new Set(),
      ...memory,
      wide,
      plan: wide ? hostPlan : null,
      failure: null,
      broken: false,
      watch: null,
    });
    this.#watch.start();
    const plan = native.sealedMemory(hostPlan, 'ncclrun-plan');
    const ordered = requesters.toSorted((one, other) => one.rank - other.rank);
    for (const [localIndex, { engine, request, rank }] of ordered.entries()) {
      if (engine.gone) continue;
      const answer = encodePlanAnswer(localIndex, key, ranks, rank);
      channel.send(engine.connection, FrameKind.plan, request, answer, [plan, segment]);
    }
    native.close(plan); // what was sent are duplicates
  }

  /** The receiver decides the NICs of a pair; rings between the same hosts differ where these have several. */
  nicsBetween({ communicator, epoch }: CommunicatorName, rank: number, peer: number): NicPair | null {
    const live = [...this.#live.values()].find(
      ({ key }) => key.epoch === epoch && communicatorName(key) === communicator,
    );
    const plan = live?.plan ?? null;
    return plan === null ? null : receivingNics(plan, rank, peer);
  }

  /** Why nothing can be gathered under this id any more, or null. */
  failureOf(key: Key): RendezvousFailure | null {
    return this.#find(key)?.failure ?? null;
  }

  /** Records that a rank has finalized its communicator. */
  finalized(key: Key, rank: number, engine: Engine): void {
    const communicator = this.#find(key);
    if (communicator?.members.get(rank)?.engine !== engine) return;
    const sentence = describeRank(rank, this.#options.hostName, engine.pid);
    communicator.finalized.set(rank, sentence);
    communicator.leavers.set(rank, engine.jobRank);
    if (communicator.unclear !== null) {
      clearTimeout(communicator.unclear.timeout);
      this.#leftBehind(communicator, rank, communicator.unclear.reason);
      communicator.unclear = null;
    }
    communicator.gone.add(rank, { result: NcclResult.invalidUsage, sentence, blame: ALL_RANKS });
    this.#remove(communicator, rank);
  }

  /** Local ranks that have finalized a communicator which others have not, whatever the round of `key`: who they are. */
  finalizedRanks(key: Key): ReadonlyMap<number, string> {
    return this.#find(key)?.finalized ?? new Map();
  }

  /** Local ranks that have left a communicator broken or aborted while others stay, whatever the round of `key`: how. */
  departedRanks(key: Key): ReadonlyMap<number, string> {
    return this.#find(key)?.departed ?? new Map();
  }

  /** Of a communicator that has ranks on this host only: those that are gone from it, and how. Null for any other. */
  goneHere(key: Key): ReadonlyMap<number, string> | null {
    const communicator = this.#find(key);
    return communicator === undefined || communicator.wide ? null : communicator.departed;
  }

  /** Records that a rank has revoked the communicator: it ended pending operations on all hosts, and stays. */
  revoked(key: Key, rank: number, sentence: string): void {
    const communicator = this.#find(key);
    if (communicator === undefined || communicator.broken) return;
    this.#fail(communicator, { rank, result: NcclResult.remoteError, sentence, blame: ALL_RANKS }, false);
    if (!communicator.wide) return;
    const payload = encodeLeft({ key, rank, how: LeftHow.revoked, reason: sentence });
    this.#options.sendUp(makeFrame(FrameKind.left, { subject: ALL_RANKS, payload }));
  }

  /** An engine saw that the ranks' calls do not fit together; `reason` is what it knows of it. */
  differed(key: Key, reason: string): void {
    const communicator = this.#find(key);
    if (communicator === undefined || communicator.broken) return;
    const contradiction = this.#watch.contradictionOf(communicator);
    if (contradiction === null) this.#awaitLeaver(communicator, reason);
    this.#differ(communicator, contradiction ?? reason);
  }

  /** False if the rank is in no such communicator. */
  departed(key: Key, rank: number, engine: Engine, departure: Departure): boolean {
    const communicator = this.#find(key);
    if (communicator?.members.get(rank)?.engine !== engine) return false;
    this.#depart(communicator, rank, departure);
    return true;
  }

  /** An operation of a rank has failed; the rank stays, but nothing comes from it any more. */
  brokenAlone(key: Key, rank: number, engine: Engine, reason: string): void {
    const communicator = this.#find(key);
    if (communicator?.members.get(rank)?.engine !== engine || communicator.broken) return;
    const leaver = leaverOf(communicator);
    if (leaver !== undefined) this.#leftBehind(communicator, leaver, reason);
    const lost = lostPeer(engine.telemetry, key);
    const blame = (lost === null ? undefined : communicator.gone.get(lost)?.blame) ?? ALL_RANKS;
    communicator.gone.add(rank, { result: NcclResult.remoteError, sentence: reason, blame });
    this.#watch.goneNow(communicator);
    if (communicator.wide) this.#reportUp(communicator, rank, LeftHow.brokenAlone, { sentence: reason, blame });
  }

  /** There is no memory for its segment here; the other hosts must learn that. A rank that joined here stands for all that did. */
  couldNotBegin(key: Key, wide: boolean, reason: string, member: Engine | undefined): void {
    const communicator = this.#find(key);
    if (communicator !== undefined) this.#release(communicator);
    this.#live.delete(keyName(key));
    if (!wide) return;
    const payload = encodeLeft({ key, rank: NO_RANK, how: LeftHow.died, reason });
    const subject = member === undefined ? ALL_RANKS : blamed(member);
    this.#options.sendUp(makeFrame(FrameKind.left, { subject, payload }));
  }

  /** The process of an engine is no more. Returns what it took part in. */
  engineGone(
    engine: Engine,
    departure: (rank: number, key: Key) => Omit<Departure, 'how'>,
  ): { key: Key; rank: number }[] {
    const left: { key: Key; rank: number }[] = [];
    for (const communicator of Array.from(this.#live.values())) {
      const ranks = [...communicator.members.values()].filter((member) => member.engine === engine);
      for (const { rank } of ranks) this.#differedBeforeEnd(communicator, rank, engine);
      for (const { rank } of ranks) {
        this.#depart(communicator, rank, { how: LeftHow.died, ...departure(rank, communicator.key) });
        left.push({ key: communicator.key, rank });
      }
    }
    return left;
  }

  /** Records the launcher's report that a rank of another host broke the communicator. */
  brokenElsewhere(key: Key, breach: Breach, cleanly: boolean): void {
    const communicator = this.#find(key);
    if (communicator !== undefined) this.#fail(communicator, breach, cleanly);
  }

  /** Records the launcher's report that a rank for which others may wait is gone. */
  goneElsewhere(key: Key, rank: number, gone: Gone): void {
    const communicator = this.#find(key);
    communicator?.gone.add(rank, gone);
    if (communicator !== undefined) this.#watch.goneNow(communicator);
  }

  /** A rank of the job has ended: records which peers its processes had lost before. */
  rankEnded(jobRank: number): void {
    for (const communicator of this.#live.values()) {
      for (const { engine } of communicator.members.values())
        if (engine.jobRank === jobRank) this.#lost(communicator, engine);
    }
  }

  close(): void {
    this.#watch.stop();
    for (const communicator of this.#live.values()) this.#release(communicator);
    this.#live.clear();
  }

  #find(key: Key): Communicator | undefined {
    return this.#live.get(communicatorKeyName(key));
  }

  #depart(communicator: Communicator, rank: number, { how, reason, cleanly, blame }: Departure): void {
    const { key, wide } = communicator;
    const wasBroken = communicator.broken;
    this.#forget(communicator, rank);
    communicator.departed.set(rank, reason);
    if (isAlone(how)) {
      communicator.gone.add(rank, { result: NcclResult.remoteError, sentence: reason, blame });
      for (const member of communicator.members.keys()) this.#notifyGone(communicator, member, rank, null);
      if (wide || communicator.suspected.has(rank))
        this.#reportUp(communicator, rank, how, { sentence: reason, blame });
      return this.#endIfEmpty(communicator);
    }
    this.#fail(communicator, { rank, result: NcclResult.remoteError, sentence: reason, blame }, cleanly);
    // Of a broken one the launcher knows, but not that this rank would have been to blame, too: it may be why the other one failed.
    if (wide && (!wasBroken || blame !== ALL_RANKS)) {
      const payload = encodeLeft({ key, rank, how, reason });
      const flags = cleanly ? ENDED_CLEANLY : 0;
      this.#options.sendUp(makeFrame(FrameKind.left, { subject: blame, flags, payload }));
    }
    return this.#endIfEmpty(communicator);
  }

  /** `waiter`: what the notified rank has called, if it waits long. */
  #notifyGone(communicator: Communicator, to: number, rank: number, waiter: ReadCalls | null): void {
    const { key, gone: all, members } = communicator;
    const [engine, gone] = [members.get(to)?.engine, all.get(rank)];
    if (engine === undefined || engine.gone || gone === undefined) return;
    const { result } = gone;
    const sentence =
      result === NcclResult.invalidUsage && waiter !== null ? this.#unanswered(waiter, gone.sentence) : gone.sentence;
    const payload = encodePeerGone(key, { to, rank, result, sentence, waited: waiter !== null });
    this.#options.channel.send(engine.connection, FrameKind.peerGone, 0, payload);
  }

  /** `leaver`: who it is that has left in order without making the call. */
  #unanswered(waiter: ReadCalls, leaver: string): string {
    return `the ranks’ calls differ: ${this.#watch.name(waiter)} called ${waiter.last}, which ${leaver} did not before ncclCommFinalize`;
  }

  /** A process whose rank failed for calls that differ may end before its engine has said so. */
  #differedBeforeEnd(communicator: Communicator, rank: number, engine: Engine): void {
    if (communicator.broken) return;
    const calls = readCalls(engine, communicator.key, rank);
    if (calls?.stuck !== true) return;
    // Read twice: a rank may be in the middle of a call.
    const contradiction = this.#watch.contradictionOf(communicator) && this.#watch.contradictionOf(communicator);
    if (contradiction !== null) return this.#differ(communicator, contradiction);
    const [leaver] = communicator.finalized;
    if (leaver === undefined) return undefined;
    return this.#leftBehind(communicator, leaver[0], this.#unanswered(calls, leaver[1]));
  }

  /** Ranks whose calls agree as far as they are known fail for one that has left; the word of it may be on its way. */
  #awaitLeaver(communicator: Communicator, reason: string): void {
    const leaver = leaverOf(communicator);
    if (leaver !== undefined) return this.#leftBehind(communicator, leaver, reason);
    const timeout = setTimeout(() => {
      communicator.unclear = null;
      this.#reportDifference(communicator, reason);
    }, LEAVER_MS).unref();
    communicator.unclear = { reason, timeout };
  }

  #reportDifference({ key, missed }: Communicator, sentence: string): void {
    if (missed.size === 0) this.#options.differ?.(nameOf(key), sentence);
  }

  #leftBehind({ key, leavers, missed }: Communicator, rank: number, sentence: string): void {
    if (missed.has(rank)) return;
    missed.add(rank);
    this.#options.leftBehind?.({ ...nameOf(key), rank, jobRank: leavers.get(rank) ?? -1, sentence });
  }

  #reportUp(
    { key }: Communicator,
    rank: number,
    how: LeftHow,
    { sentence, blame }: Pick<Gone, 'sentence' | 'blame'>,
  ): void {
    const payload = encodeLeft({ key, rank, how, reason: sentence });
    this.#options.sendUp(makeFrame(FrameKind.left, { subject: blame, payload }));
  }

  /** Mostly all leave at the same time, which takes one frame. */
  #reportFinalized(communicator: Communicator): void {
    const { wide, finalized, reportedGone } = communicator;
    if (!wide || reportedGone.size === finalized.size) return;
    for (const [rank, sentence] of finalized) {
      if (reportedGone.has(rank)) continue;
      reportedGone.add(rank);
      this.#reportUp(communicator, rank, LeftHow.finalized, { sentence, blame: ALL_RANKS });
    }
  }

  /** Looked at afterwards: it happened before whatever ended the rank. */
  #lost({ key, wide, gone, members, suspected }: Communicator, { telemetry, jobRank }: Engine): void {
    const rank = lostPeer(telemetry, key);
    const known = rank === null ? undefined : gone.get(rank);
    if (rank === null) return;
    if (known !== undefined && known.blame !== ALL_RANKS)
      this.#options.recordBlame(
        jobRank,
        { type: 'missed', key, rank, blame: known.blame, sentence: known.sentence },
        0,
      );
    else if (wide) this.#options.recordBlame(jobRank, { type: 'suspected', key, rank }, 0);
    else if (known === undefined) {
      // The rank is on this host and reports its own departure, which may be in transit.
      const suspect = members.get(rank)?.engine.jobRank;
      if (suspect === undefined) return;
      suspected.add(rank);
      this.#options.recordBlame(jobRank, { type: 'suspected-here', key, rank, suspect }, 0);
    }
  }

  #remove(communicator: Communicator, rank: number): void {
    this.#forget(communicator, rank);
    this.#endIfEmpty(communicator);
  }

  #forget(communicator: Communicator, rank: number): void {
    const { key, members } = communicator;
    const member = members.get(rank);
    members.delete(rank);
    if (member === undefined) return;
    this.#lost(communicator, member.engine);
    this.#options.left(member.engine.jobRank, key);
  }

  #differ(communicator: Communicator, sentence: string): void {
    const { key, wide } = communicator;
    this.#fail(communicator, { rank: NO_RANK, result: NcclResult.invalidUsage, sentence, blame: ALL_RANKS }, false);
    if (!wide) return;
    const payload = encodeLeft({ key, rank: NO_RANK, how: LeftHow.differed, reason: sentence });
    this.#options.sendUp(makeFrame(FrameKind.left, { subject: ALL_RANKS, payload }));
  }

  #fail(communicator: Communicator, failure: Breach, cleanly: boolean): void {
    if (communicator.broken) return;
    communicator.failure ??= failure;
    if (!cleanly) this.#break(communicator, failure);
    else communicator.watch ??= setInterval(() => this.#lookAt(communicator), DESERTED_CHECK_MS).unref();
  }

  #lookAt(communicator: Communicator): void {
    const { key, failure, members } = communicator;
    const waits = [...members.values()].some(({ engine }) => isStalled(engine.telemetry, key));
    if (waits && failure !== null) this.#break(communicator, failure, '; others waited for it');
  }

  /** `blamed` follows the sentence where the job blames the rank. */
  #break(communicator: Communicator, failure: Breach, blamed = ''): void {
    const { native, channel } = this.#options;
    const { key, segment, abortOffset, doorbellOffset, localRanks, members } = communicator;
    const { rank, result, sentence, blame } = failure;
    communicator.failure = failure;
    communicator.broken = true;
    if (rank === NO_RANK && result === NcclResult.invalidUsage && communicator.unclear === null)
      this.#reportDifference(communicator, sentence);
    this.#stopWatch(communicator);
    const engines = new Set([...members.values()].map((member) => member.engine));
    // Before the ranks are notified: a rank that failed before this moment failed by itself.
    if (blame !== ALL_RANKS) {
      const record: BlameRecord = { type: 'missed', key, rank, blame, sentence: `${sentence}${blamed}` };
      for (const { jobRank } of engines) this.#options.recordBlame(jobRank, record, Date.now());
    }
    native.segmentAbort(segment, abortOffset, doorbellOffset, localRanks, rank, result, sentence);
    const payload = encodeAborted(key, rank, result, sentence);
    for (const engine of engines) {
      if (!engine.gone) channel.send(engine.connection, FrameKind.aborted, 0, payload);
    }
  }

  #endIfEmpty(communicator: Communicator): void {
    if (communicator.members.size > 0) return;
    const { key, wide, broken, failure } = communicator;
    this.#live.delete(keyName(key));
    this.#release(communicator);
    this.#options.ended(key, failure ?? { result: NcclResult.remoteError, sentence: `${describeKey(key)} has ended` });
    if (!wide || broken) return;
    const payload = encodeLeft({ key, rank: ALL_RANKS, how: LeftHow.finalized, reason: '' });
    this.#options.sendUp(makeFrame(FrameKind.left, { subject: ALL_RANKS, payload }));
  }

  #release(communicator: Communicator): void {
    this.#stopWatch(communicator);
    this.#options.native.close(communicator.segment);
  }

  #stopWatch(communicator: Communicator): void {
    if (communicator.watch !== null) clearInterval(communicator.watch);
    communicator.watch = null;
  }
}

/** A rank that has left in order while others stay. */
function leaverOf({ gone }: Communicator): number | undefined {
  for (const [rank, { result }] of gone.all) if (result === NcclResult.invalidUsage) return rank;
  return undefined;
}

function nameOf(key: Key): CommunicatorName {
  return { communicator: communicatorName(key), epoch: key.epoch };
}
