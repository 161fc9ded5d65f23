/**
 * Our stdin to the ranks that read it (--stdin), only as fast as the slowest takes it. The ranks get it once all of them run. A pipe or a file is
 * begun when the ranks are ordered, so that how much of it a job takes does not depend on how quickly its ranks end. A terminal is left alone until
 * the ranks run, and while we are in the background, because reading it would stop us.
 *
 *   waiting ── every reader runs ──► reading ── end of file, no reader is left ──► ended
 *                      │               │ ▲
 *                      └──► background ◄─┘ a terminal that is another job's now
 */
import { fstatSync, readSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind, STDIN_END } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { isInForeground, isTerminal } from '../model/terminal.ts';

/** Bytes that may be in transit to a rank. */
const WINDOW_BYTES = 256 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** Major 1, minor 3: the same on every Linux. */
const DEV_NULL = 0x103;
/** Nothing tells us that `fg` gave us the terminal, if we ran already. */
const LOOK_MS = 250;
const NEWLINE = 0x0a;

/** Whether there is anything to read: a closed descriptor and /dev/null need no pipe. */
export function hasStdin(): boolean {
  try {
    const stat = fstatSync(0);
    return !(stat.isCharacterDevice() && stat.rdev === DEV_NULL);
  } catch {
    return false;
  }
}

/** What the ranks are to read. */
interface StdinSource {
  readonly stream: Readable;
  readonly isTerminal: () => boolean;
  readonly isInForeground: () => boolean;
  /** Drops a chunk, if there is one now. The stream is open. */
  readonly takeChunk: () => void;
}

const ours: StdinSource = {
  get stream() {
    return process.stdin; // Node makes it when it is first asked for
  },
  isTerminal: () => isTerminal(0),
  isInForeground,
  takeChunk: () => {
    const stat = fstatSync(0);
    if (!stat.isFile() && !stat.isFIFO() && !stat.isSocket()) return;
    try {
      readSync(0, Buffer.alloc(CHUNK_BYTES));
    } catch {
      // Nothing is there: Node has made the pipe non-blocking.
    }
  },
};

/** Where a rank's input goes. */
interface StdinHost {
  send(frame: Frame): void;
}

interface Reader {
  readonly host: StdinHost;
  started: boolean;
  /** Bytes sent and not yet taken. */
  onTheWay: number;
}

type State =
  | { readonly name: 'waiting' }
  | { readonly name: 'background'; readonly look: NodeJS.Timeout | null }
  | { readonly name: 'reading' }
  | { readonly name: 'ended' };

export class StdinFlow {
  readonly #readers = new Map<number, Reader>();
  readonly #typed: () => void;
  readonly #source: StdinSource;
  /** What was read before all readers ran. */
  readonly #ahead: Buffer[] = [];
  #opened = false;
  /** Something was read, or the end. */
  #seen = false;
  #endedAhead = false;
  #state: State = { name: 'waiting' };

  /** `typed`: a line typed at the terminal was read. */
  constructor(typed: () => void, source: StdinSource = ours) {
    this.#typed = typed;
    this.#source = source;
  }

  /** Before the first `started`: a rank that will read. */
  expect(rank: number, host: StdinHost): void {
    this.#readers.set(rank, { host, started: false, onTheWay: 0 });
  }

  /** The ranks are ordered. */
  begin(): void {
    if (this.#state.name === 'waiting' && this.#readers.size > 0 && !this.#source.isTerminal()) this.#open();
  }

  started(rank: number): void {
    const reader = this.#readers.get(rank);
    if (reader === undefined) return;
    reader.started = true;
    this.#begin();
  }

  /** The rank took some. @throws ProtocolError where it took nothing */
  credit(rank: number, bytes: number): void {
    if (bytes === 0) throw new ProtocolError(`credit of no byte for the input of rank ${rank}`);
    const reader = this.#readers.get(rank);
    if (reader === undefined) return;
    const wasFull = reader.onTheWay >= WINDOW_BYTES;
    reader.onTheWay = Math.max(0, reader.onTheWay - bytes);
    if (wasFull) this.#pace();
  }

  /** The rank reads no more; the others go on. */
  drop(rank: number): void {
    if (!this.#readers.delete(rank)) return;
    if (this.#readers.size === 0) return this.stop();
    this.#begin();
    this.#pace();
  }

  /** ^Z: whose terminal it is when we go on is not known. */
  suspend(): void {
    if (this.#state.name !== 'reading' || !this.#source.isTerminal()) return;
    this.#source.stream.pause();
    this.#state = { name: 'background', look: null };
  }

  resume(): void {
    if (this.#state.name === 'background') this.#read();
  }

  /** Nobody reads any more. */
  stop(): void {
    if (this.#state.name === 'background' && this.#state.look !== null) clearTimeout(this.#state.look);
    this.#state = { name: 'ended' };
    if (!this.#opened) return;
    if (!this.#seen && !this.#source.isTerminal()) this.#source.takeChunk();
    this.#source.stream.removeAllListeners('data');
    this.#source.stream.destroy();
  }

  #begin(): void {
    if (this.#state.name !== 'waiting') return;
    if (Array.from(this.#readers.values()).every((reader) => reader.started)) this.#read();
  }

  #read(): void {
    if (this.#source.isTerminal() && !this.#source.isInForeground()) {
      this.#state = { name: 'background', look: setTimeout(() => this.#read(), LOOK_MS) };
      return;
    }
    this.#state = { name: 'reading' };
    if (!this.#opened) return this.#open();
    for (const bytes of this.#ahead.splice(0)) this.#take(bytes);
    if (this.#endedAhead) this.#end();
    this.#pace();
  }

  #open(): void {
    this.#opened = true;
    const { stream } = this.#source;
    stream.on('data', (bytes: Buffer) => this.#take(bytes));
    for (const end of ['end', 'error', 'close'] as const) stream.on(end, () => this.#end());
  }

  #take(bytes: Buffer): void {
    this.#seen = true;
    if (this.#state.name === 'waiting') {
      this.#ahead.push(bytes);
      this.#source.stream.pause();
    }
    if (this.#state.name !== 'reading') return;
    if (bytes.at(-1) === NEWLINE && this.#source.isTerminal()) this.#typed();
    for (let offset = 0; offset < bytes.length; offset += CHUNK_BYTES) {
      this.#send(bytes.subarray(offset, offset + CHUNK_BYTES), 0);
    }
    for (const reader of this.#readers.values()) reader.onTheWay += bytes.length;
    this.#pace();
  }

  #pace(): void {
    if (this.#state.name !== 'reading') return;
    const full = Array.from(this.#readers.values()).some((reader) => reader.onTheWay >= WINDOW_BYTES);
    if (full) this.#source.stream.pause();
    else this.#source.stream.resume();
  }

  #end(): void {
    this.#seen = true;
    if (this.#state.name === 'waiting') this.#endedAhead = true;
    if (this.#state.name !== 'reading') return;
    this.#state = { name: 'ended' };
    this.#send(new Uint8Array(0), STDIN_END);
  }

  /** One frame for each host: its guardian knows which of its ranks read. */
  #send(payload: Uint8Array, flags: number): void {
    const subjects = new Map<StdinHost, number>();
    for (const [rank, { host }] of this.#readers) subjects.set(host, subjects.has(host) ? ALL_RANKS : rank);
    for (const [host, subject] of subjects) host.send(makeFrame(FrameKind.stdin, { subject, flags, payload }));
  }
}
