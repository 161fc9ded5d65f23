/**
 * Compares what the ranks of this host's communicators call: ranks whose calls differ fail with a message instead of waiting for
 * each other. The launcher compares them with ranks of other hosts once they have stalled here.
 */
import { encodeCalls } from '../../control/messages/calls.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { describeRank } from '../../control/rendezvous/failure.ts';
import type { Leavers } from '../../control/rendezvous/leavers.ts';
import { describeMismatch, findMismatch } from '../../control/rendezvous/mismatch.ts';
import { readCalls } from './calls.ts';
import type { ReadCalls } from './calls.ts';
import type { Engine } from './engine.ts';

const EVERY_MS = 250;

interface Watched {
  readonly key: Key;
  /** It has ranks on other hosts. */
  readonly wide: boolean;
  readonly broken: boolean;
  readonly members: ReadonlyMap<number, { readonly rank: number; readonly engine: Engine }>;
  /** Ranks that are gone from it. */
  readonly gone: Leavers;
}

interface CallWatchOptions<Some extends Watched> {
  readonly hostName: string;
  communicators(): Iterable<Some>;
  sendUp(frame: Frame): void;
  /** Its ranks call what does not fit together. */
  differ(communicator: Some, sentence: string): void;
  /** A rank may wait for one that is gone. */
  stalled(communicator: Some, waiter: ReadCalls, rank: number): void;
  /** Called at each check: for what need not be reported at once. */
  checked(communicator: Some): void;
}

/** What the last check of a communicator found. */
interface Memory {
  /** Pages are read while they are written: a contradiction must be seen twice. */
  suspicion: string | null;
  /** What the launcher got last. */
  reported: string;
}

export class CallWatch<Some extends Watched> {
  readonly #options: CallWatchOptions<Some>;
  readonly #memories = new WeakMap<Some, Memory>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: CallWatchOptions<Some>) {
    this.#options = options;
  }

  /** Goes on until there is no communicator any more. */
  start(): void {
    this.#timer ??= setInterval(() => this.#look(), EVERY_MS).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** What is known to differ right now, or null. */
  contradictionOf(communicator: Some): string | null {
    return this.#contradiction(this.#read(communicator));
  }

  #look(): void {
    const communicators = Array.from(this.#options.communicators());
    if (communicators.length === 0) this.stop();
    for (const communicator of communicators) if (!communicator.broken) this.#lookAt(communicator);
  }

  #lookAt(communicator: Some): void {
    const { members, wide } = communicator;
    const memory = this.#memories.get(communicator) ?? { suspicion: null, reported: '' };
    this.#memories.set(communicator, memory);
    this.#options.checked(communicator);
    if (members.size < 2 && !wide && communicator.gone.all.size === 0) return;
    const all = this.#read(communicator);
    this.#reportStalls(communicator, all);
    const suspicion = this.#contradiction(all);
    const sure = suspicion !== null && memory.suspicion !== null;
    memory.suspicion = suspicion;
    if (sure) this.#options.differ(communicator, suspicion);
    else if (wide) this.#report(communicator, all, memory);
  }

  #read({ key, members }: Some): ReadCalls[] {
    const read = Array.from(members.values(), ({ rank, engine }) => readCalls(engine, key, rank));
    return read.filter((calls) => calls !== null);
  }

  #contradiction(all: readonly ReadCalls[]): string | null {
    const mismatch = findMismatch(all);
    return mismatch === null ? null : describeMismatch(mismatch, (calls) => this.name(calls));
  }

  /** A rank is gone: ranks that already wait for it are notified now. */
  goneNow(communicator: Some): void {
    if (!communicator.broken) this.#reportStalls(communicator, this.#read(communicator));
  }

  /** Reports ranks that wait for one that is gone. Each rank decides whether its wait can still end, because the data of the gone rank may have arrived. */
  #reportStalls(communicator: Some, all: readonly ReadCalls[]): void {
    for (const calls of all) {
      for (const rank of calls.stuck ? communicator.gone.all.keys() : []) {
        if (rank !== calls.rank && (calls.waitingFor ?? rank) === rank)
          this.#options.stalled(communicator, calls, rank);
      }
    }
  }

  /** Reports stalled ranks to the launcher, one of each position. */
  #report({ key }: Some, all: readonly ReadCalls[], memory: Memory): void {
    const positions = new Map<string, ReadCalls>();
    for (const calls of all)
      if (calls.stuck) positions.set(`${calls.count}:${calls.hashes[0] ?? ''}:${calls.waitingFor ?? ''}`, calls);
    const current = [...positions.keys()].toSorted().join();
    if (current === memory.reported) return;
    memory.reported = current;
    if (positions.size === 0) return;
    const payload = encodeCalls(key, [...positions.values()]);
    this.#options.sendUp(makeFrame(FrameKind.calls, { subject: ALL_RANKS, payload }));
  }

  name({ rank, pid }: ReadCalls): string {
    return describeRank(rank, this.#options.hostName, pid);
  }
}
