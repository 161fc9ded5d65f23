/**
 * What the ranks of this host contribute to keys. A key whose ranks are all here completes here; else the contributions go to the launcher
 * in one message, when every rank of the host has spoken or a moment after the first, and from then on the key is the launcher's.
 */
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { areOfOneCommunicator, keyName } from '../../control/messages/key.ts';
import type { Key } from '../../control/messages/key.ts';
import { encodeLeft, encodeMerged } from '../../control/messages/rendezvous-codec.ts';
import type { Entry } from '../../control/messages/rendezvous-codec.ts';
import { isShrinkRound, LeftHow } from '../../control/messages/rendezvous.ts';
import { readSplit } from '../../control/messages/split.ts';
import { Collector } from '../../control/rendezvous/collector.ts';
import type { PendingGather } from '../../control/rendezvous/collector.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import type { Requester, Engine } from './engine.ts';

/**
 * Time after which the agent sends the contributions of an incomplete gather to the launcher. With several hosts the launcher completes gathers and
 * should get contributions soon; with one host most gathers complete at the agent.
 */
export const FLUSH_AFTER_MS = { oneHost: 500, severalHosts: 1 } as const;

/** Who contributes. */
interface Contributor {
  readonly engine: Pick<Engine, 'jobRank' | 'pid'>;
  /** In the communicator. */
  readonly rank: number;
}

interface PendingGathersOptions<Asker> {
  readonly hostIndex: number;
  readonly hostName: string;
  readonly epoch: number;
  /** Ranks of the job on this host that could still speak. */
  readonly localRanks: () => number;
  /** How long contributions wait for those of the host's other ranks. */
  readonly flushAfterMs: number;
  /** Whether a key whose ranks are all here may complete here. */
  readonly completesHere: (key: Key) => boolean;
  /** Ranks of the communicator that are gone, where all that it has had are here; null: it is elsewhere, too. */
  readonly goneHere: (key: Key) => ReadonlyMap<number, string> | null;
  sendUp(frame: Frame): void;
  complete(gather: PendingGather, requesters: readonly Asker[]): void;
  refuse(requesters: readonly Asker[], failure: RendezvousFailure): void;
}

interface Contribution {
  readonly key: Key;
  readonly size: number;
  readonly bytes: Uint8Array;
}

interface Pending<Asker> {
  readonly key: Key;
  readonly requesters: Asker[];
  /** Ranks that it completes without. */
  readonly leftOut: readonly number[];
  /** Those are whoever is gone. */
  readonly withoutGone: boolean;
  /** Not yet sent to the launcher, with the size that each states. */
  unsent: { readonly size: number; readonly entry: Entry }[];
  /** The key is the launcher's. */
  forwarded: boolean;
  timer: NodeJS.Timeout | null;
}

export class PendingGathers<Asker extends Contributor = Requester> {
  readonly #options: PendingGathersOptions<Asker>;
  readonly #collector: Collector;
  readonly #pending = new Map<string, Pending<Asker>>();

  constructor(options: PendingGathersOptions<Asker>) {
    this.#options = options;
    this.#collector = new Collector({ epoch: options.epoch, hostName: () => options.hostName });
  }

  /** Keys that wait here; 0 when all is done. */
  get size(): number {
    return this.#pending.size;
  }

  add({ key, size, bytes }: Contribution, requester: Asker): void {
    const name = keyName(key);
    const { engine, rank } = requester;
    const entry = { rank, jobRank: engine.jobRank, pid: engine.pid, bytes };
    const known = this.#pending.get(name);
    const { leftOut, withoutGone } = isShrinkRound(key.round)
      ? readSplit(bytes, size, rank)
      : { leftOut: [], withoutGone: false };
    const pending: Pending<Asker> = known ?? {
      key,
      requesters: [],
      leftOut,
      withoutGone,
      unsent: [],
      forwarded: false,
      timer: null,
    };
    let atOnce = false;
    if (!pending.forwarded) {
      const outcome = this.#collector.add(key, size, { ...entry, host: this.#options.hostIndex });
      if (outcome.type === 'failed' && known === undefined) return this.#options.refuse([requester], outcome.failure);
      if (outcome.type === 'complete' && this.#options.completesHere(key)) {
        this.#forget(name, pending);
        return this.#options.complete(outcome.gather, [...pending.requesters, requester]);
      }
      // A contradiction is the launcher's to judge, because ranks of other hosts may wait too.
      atOnce = outcome.type !== 'waiting';
    }
    pending.requesters.push(requester);
    pending.unsent.push({ size, entry });
    this.#pending.set(name, pending);
    if (this.settleGone(key)) return undefined;
    if (this.#settlesHere(pending)) return undefined;
    if (atOnce || this.#allHaveContributed(pending)) return this.#flush(pending);
    pending.timer ??= setTimeout(() => this.#flush(pending), this.#options.flushAfterMs);
    return undefined;
  }

  /** A key that is to complete without those that are gone does so, where nobody else is awaited. */
  settleGone(key: Key): boolean {
    const name = keyName(key);
    const pending = this.#pending.get(name);
    const gone = this.#options.goneHere(key);
    if (pending === undefined || gone === null) return false;
    const gather = this.#collector.completeWithout(key, (rank) => gone.has(rank));
    if (gather === null) return false;
    this.#forget(name, pending);
    this.#options.complete(gather, pending.requesters);
    return true;
  }

  /** The launcher is about to answer a key that nobody here had to ask for. */
  expect(key: Key, requesters: readonly Asker[]): void {
    this.#pending.set(keyName(key), {
      key,
      requesters: [...requesters],
      leftOut: [],
      withoutGone: false,
      unsent: [],
      forwarded: true,
      timer: null,
    });
  }

  /** The answer to a key is there: who asked. Those of gone engines are left out. */
  take(key: Key): Asker[] {
    const name = keyName(key);
    const pending = this.#pending.get(name);
    if (pending === undefined) return [];
    this.#forget(name, pending);
    return pending.requesters;
  }

  /** Everything goes to the launcher now: it learns next that a rank ended, and must know who waits for it. */
  flushAll(): void {
    for (const pending of this.#pending.values()) if (!this.#settlesHere(pending)) this.#flush(pending);
  }

  /** An engine is gone or gives up: nobody can wait for its answers, and what it takes part in cannot complete. */
  leave(engine: Asker['engine'], how: LeftHow, describe: (rank: number) => string): void {
    for (const pending of Array.from(this.#pending.values())) {
      const requester = pending.requesters.find((one) => one.engine === engine);
      if (requester !== undefined) this.fail(pending.key, requester.rank, how, describe(requester.rank));
    }
  }

  /** A rank that the key needs will not come; the launcher notifies all hosts, this one too. */
  fail(key: Key, rank: number, how: LeftHow, reason: string): void {
    const pending = this.#pending.get(keyName(key));
    if (pending === undefined) return;
    this.#flush(pending);
    const payload = encodeLeft({ key, rank, how, reason });
    this.#options.sendUp(makeFrame(FrameKind.left, { subject: ALL_RANKS, payload }));
  }

  /** Whether a key that waits here still waits for this rank. */
  awaits(key: Key, rank: number): boolean {
    const pending = this.#pending.get(keyName(key));
    if (pending === undefined || pending.requesters.some((requester) => requester.rank === rank)) return false;
    return !pending.withoutGone && !pending.leftOut.includes(rank);
  }

  /** Keys of the communicator of `key` that wait here. */
  keysOf(key: Key): Key[] {
    return [...this.#pending.values()].map((one) => one.key).filter((one) => areOfOneCommunicator(one, key));
  }

  close(): void {
    for (const { timer } of this.#pending.values()) if (timer !== null) clearTimeout(timer);
    this.#pending.clear();
  }

  /** It waits for nobody elsewhere, and who is gone is known here. */
  #settlesHere({ key, withoutGone }: Pending<Asker>): boolean {
    return withoutGone && this.#options.goneHere(key) !== null;
  }

  #allHaveContributed(pending: Pending<Asker>): boolean {
    const ranks = new Set(pending.requesters.map(({ engine }) => engine.jobRank).filter((rank) => rank >= 0));
    return ranks.size >= this.#options.localRanks();
  }

  #flush(pending: Pending<Asker>): void {
    if (pending.timer !== null) clearTimeout(pending.timer);
    pending.timer = null;
    pending.forwarded = true;
    this.#collector.forget(pending.key);
    const { unsent } = pending;
    pending.unsent = [];
    for (const size of new Set(unsent.map((one) => one.size))) {
      const entries = unsent.filter((one) => one.size === size).map((one) => one.entry);
      const payload = encodeMerged({ key: pending.key, size, entries });
      this.#options.sendUp(makeFrame(FrameKind.merged, { payload }));
    }
  }

  #forget(name: string, pending: Pending<Asker>): void {
    if (pending.timer !== null) clearTimeout(pending.timer);
    this.#pending.delete(name);
  }
}
