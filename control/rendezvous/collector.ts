/**
 * Collects one contribution per rank under a key. The collector holds a key from its first contribution until it completes or fails:
 *
 *   (unknown) ── first ──► waiting ── last ──► complete (forgotten)
 *                             └── duplicate, size or left-out ranks differ, fail() ──► failed (remembered for latecomers)
 */
import { steadyClock, type Clock } from '../clock.ts';
import { NcclResult } from '../messages/bootstrap.ts';
import { communicatorKeyName, describeKey, keyName } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import type { Entry } from '../messages/rendezvous-codec.ts';
import { ProtocolError } from '../messages/protocol-error.ts';
import { sizeText } from '../size-text.ts';
import { isShrinkRound } from '../messages/rendezvous.ts';
import { readSplit } from '../messages/split.ts';
import { describeRank, listRanks } from './failure.ts';
import type { RendezvousFailure } from './failure.ts';
import { RecentMap } from './memory.ts';

/** Maximum size of a communicator, so that a corrupt size cannot exhaust memory. */
const MAX_RANKS = 1 << 20;
/** Maximum bytes of one host's pending contributions, including their overhead. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
const ENTRY_BYTES = 1024;
const REMEMBERED_FAILURES = 256;
const REMEMBERED_SHRINKS = 256;

interface Contributed extends Entry {
  /** Index of the contributing host. */
  readonly host: number;
}

export interface PendingGather {
  readonly key: Key;
  readonly size: number;
  /** Contributions by rank. */
  readonly entries: Map<number, Contributed>;
  /** Ranks without which the key completes, ascending. */
  leftOut: readonly number[];
  /** True if it completes without all ranks that are gone: see completeWithout. */
  readonly withoutGone: boolean;
  /** Hosts that contributed, including those whose contribution the collector refused. */
  readonly hosts: Set<number>;
  /** Time of the first contribution on the collector's clock. */
  readonly since: number;
}

type Outcome =
  | { readonly type: 'waiting'; readonly gather: PendingGather }
  | { readonly type: 'complete'; readonly gather: PendingGather }
  /** The caller must notify every waiting rank; `gather` is null if only this contributor waits. */
  | { readonly type: 'failed'; readonly gather: PendingGather | null; readonly failure: RendezvousFailure };

/** Ranks that a contributor wants to leave out. */
type Exclusion = Pick<PendingGather, 'leftOut' | 'withoutGone'>;
const NOBODY: Exclusion = { leftOut: [], withoutGone: false };

function leftOutText({ leftOut, withoutGone }: Exclusion): string {
  return withoutGone ? 'all that are gone' : listRanks(leftOut);
}

interface CollectorOptions {
  readonly epoch: number;
  readonly hostName: (host: number) => string;
  /** Default: the steady clock. */
  readonly clock?: Clock;
}

export class Collector {
  readonly #options: CollectorOptions;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, PendingGather>();
  /** Bytes of pending contributions by host. */
  readonly #waitingBytes = new Map<number, number>();
  readonly #failed = new RecentMap<RendezvousFailure>(REMEMBERED_FAILURES);
  /** Per communicator, the ranks that its shrinks have left out. They did not count those shrinks, so they can join no later one. */
  readonly #leftBehind = new RecentMap<ReadonlySet<number>>(REMEMBERED_SHRINKS);

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Pending keys, oldest first. */
  waiting(): PendingGather[] {
    return [...this.#waiting.values()];
  }

  get(key: Key): PendingGather | undefined {
    return this.#waiting.get(keyName(key));
  }

  /** @throws ProtocolError if the host exceeds its limit of pending bytes */
  add(key: Key, size: number, entry: Contributed): Outcome {
    const name = keyName(key);
    const known = this.#waiting.get(name);
    const earlier = known === undefined ? this.#failed.get(name) : undefined;
    if (earlier !== undefined) return { type: 'failed', gather: null, failure: earlier };
    const exclusion = isShrinkRound(key.round) ? readSplit(entry.bytes, size, entry.rank) : NOBODY;
    const problem =
      this.#wrongInItself(key, size, entry) ??
      (known === undefined ? this.#leavesBehind(key, exclusion) : this.#contradiction(known, size, entry, exclusion));
    if (problem !== undefined) {
      if (known === undefined) return { type: 'failed', gather: null, failure: problem };
      known.hosts.add(entry.host);
      this.fail(key, problem);
      return { type: 'failed', gather: known, failure: problem };
    }
    const { leftOut, withoutGone } = exclusion;
    const gather: PendingGather = known ?? {
      key,
      size,
      entries: new Map(),
      leftOut,
      withoutGone,
      hosts: new Set(),
      since: this.#clock.now(),
    };
    this.#weigh(entry, 1);
    gather.entries.set(entry.rank, entry);
    gather.hosts.add(entry.host);
    if (gather.entries.size === size - leftOut.length) return { type: 'complete', gather: this.#complete(gather) };
    if (known === undefined) this.#waiting.set(name, gather);
    return { type: 'waiting', gather };
  }

  /** Completes a key that allows it and waits only for ranks that are gone; else returns null. */
  completeWithout(key: Key, isGone: (rank: number) => boolean): PendingGather | null {
    const gather = this.get(key);
    if (gather?.withoutGone !== true) return null;
    const missing: number[] = [];
    for (let rank = 0; rank < gather.size; rank++) {
      if (gather.entries.has(rank)) continue;
      if (!isGone(rank)) return null;
      missing.push(rank);
    }
    gather.leftOut = missing;
    return this.#complete(gather);
  }

  #complete(gather: PendingGather): PendingGather {
    const { key, leftOut } = gather;
    this.#remove(gather);
    const parent = communicatorKeyName(key);
    if (leftOut.length > 0)
      this.#leftBehind.set(parent, new Set([...(this.#leftBehind.get(parent) ?? []), ...leftOut]));
    return gather;
  }

  /** Fails a key; returns its contributions if it was pending. */
  fail(key: Key, failure: RendezvousFailure): PendingGather | undefined {
    const name = keyName(key);
    const gather = this.#waiting.get(name);
    if (gather !== undefined) this.#remove(gather);
    this.#failed.set(name, failure);
    return gather;
  }

  /** Drops a key without remembering it, because another owner has taken it over. */
  forget(key: Key): void {
    const gather = this.get(key);
    if (gather !== undefined) this.#remove(gather);
  }

  #remove(gather: PendingGather): void {
    this.#waiting.delete(keyName(gather.key));
    for (const entry of gather.entries.values()) this.#weigh(entry, -1);
  }

  #weigh({ host, bytes }: Contributed, sign: 1 | -1): void {
    const all = (this.#waitingBytes.get(host) ?? 0) + sign * (bytes.length + ENTRY_BYTES);
    if (all > MAX_WAITING_BYTES)
      throw new ProtocolError(`more than ${sizeText(MAX_WAITING_BYTES)} of contributions that wait for others`);
    this.#waitingBytes.set(host, all);
  }

  #wrongInItself(key: Key, size: number, entry: Contributed): RendezvousFailure | undefined {
    const who = this.#who(entry);
    const { epoch } = this.#options;
    if (key.epoch !== epoch) {
      return {
        result: NcclResult.remoteError,
        sentence:
          key.epoch < epoch
            ? `restarted: ${who} speaks of epoch ${key.epoch}, the job is in epoch ${epoch} now`
            : `${who} speaks of epoch ${key.epoch}, the job is in epoch ${epoch}`,
      };
    }
    if (size < 1 || size > MAX_RANKS || entry.rank >= size) {
      return {
        result: NcclResult.invalidArgument,
        sentence: `${who} is no rank of ${describeKey(key)} with ${size} ranks`,
      };
    }
    return undefined;
  }

  #leavesBehind(key: Key, { leftOut, withoutGone }: Exclusion): RendezvousFailure | undefined {
    if (!isShrinkRound(key.round) || withoutGone) return undefined;
    const before = this.#leftBehind.get(communicatorKeyName(key));
    const rank = [...(before ?? [])].find((one) => !leftOut.includes(one));
    if (rank === undefined) return undefined;
    return {
      result: NcclResult.invalidUsage,
      sentence: `${describeKey(key)} needs rank ${rank}, which an earlier one left out: shrink the communicator that the earlier one made`,
    };
  }

  #contradiction(
    gather: PendingGather,
    size: number,
    entry: Contributed,
    exclusion: Exclusion,
  ): RendezvousFailure | undefined {
    const what = describeKey(gather.key);
    const same = gather.entries.get(entry.rank);
    if (size !== gather.size) {
      const [first] = gather.entries.values();
      const phrase = first === undefined ? '' : `, ${this.#who(first)} has ${gather.size}`;
      return {
        result: NcclResult.invalidArgument,
        sentence: `sizes differ in ${what}: ${this.#who(entry)} has ${size} ranks${phrase}`,
      };
    }
    const agree = exclusion.withoutGone === gather.withoutGone && exclusion.leftOut.join() === gather.leftOut.join();
    if (!agree) {
      const [first] = gather.entries.values();
      const phrase = first === undefined ? '' : `, ${this.#who(first)} leaves out ${leftOutText(gather)}`;
      return {
        result: NcclResult.invalidArgument,
        sentence: `the ranks left out differ in ${what}: ${this.#who(entry)} leaves out ${leftOutText(exclusion)}${phrase}`,
      };
    }
    if (same === undefined) return undefined;
    const hostName = this.#options.hostName(same.host);
    return {
      result: NcclResult.invalidUsage,
      sentence: `rank ${entry.rank} of ${what} is claimed twice: by ${this.#who(entry)} and by pid ${same.pid} on ${hostName}`,
    };
  }

  #who(entry: Contributed): string {
    return describeRank(entry.rank, this.#options.hostName(entry.host), entry.pid);
  }
}
