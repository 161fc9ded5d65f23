/**
 * Many ranks' output on one stream, lines whole. Chunks are whole lines, but a very long line comes in pieces: while one rank's line is
 * open the others' chunks are held. A rank that stalls in the middle of a line must not stop the others for ever (they may be what it
 * waits for): after `lineTimeoutMs` its line is broken.
 */
import type { OutputChunk } from '../model/event.ts';
import type { Writer } from './writer.ts';

/** Held chunks up to this many bytes count as taken, so that the rank whose line is open can still get credit to finish it. */
const heldLimit = 16 * 1024 * 1024;
const lineTimeoutMs = 250;
const newline = Uint8Array.of(0x0a);

/** Whoever else wrote the same beside the rank itself, and it: --fold. */
export interface LaneChunk extends OutputChunk {
  readonly writers?: readonly Pick<OutputChunk, 'rank' | 'host'>[];
}

/** A rank's stdout and stderr are two sources, also where both go to one lane. */
function sourceOf(chunk: LaneChunk): number {
  return 2 * chunk.rank + (chunk.stream === 'stdout' ? 0 : 1);
}

interface Held {
  readonly chunk: LaneChunk;
  readonly settle: (taken: Promise<void>) => void;
}

export class Lane {
  readonly #writer: Writer;
  readonly #prefixOf: (chunk: LaneChunk) => string;
  /** The source whose line has no newline yet. */
  #open: number | null = null;
  #held: Held[] = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #ended = new Set<number>();

  constructor(writer: Writer, prefixOf: (chunk: LaneChunk) => string) {
    this.#writer = writer;
    this.#prefixOf = prefixOf;
  }

  /** Resolves when the system has the bytes, or we hold them; rejects as Writer.write does. */
  output(chunk: LaneChunk): Promise<void> {
    if (this.#open === null || this.#open === sourceOf(chunk)) {
      const taken = this.#emit(chunk);
      if (this.#held.length > 0) this.#release();
      return taken;
    }
    if (this.#ended.has(this.#open)) {
      this.#breakLine();
      return this.output(chunk);
    }
    return this.#hold(chunk);
  }

  /** The rank writes no more by itself: whoever waits for the end of its line need not. */
  rankEnded(rank: number): void {
    this.#ended.add(2 * rank).add(2 * rank + 1);
    if (this.#open !== null && this.#ended.has(this.#open) && this.#held.length > 0) this.#breakLine();
  }

  /** The ranks are started again. */
  ranksAgain(): void {
    if (this.#open !== null) this.#breakLine();
    this.#ended.clear();
  }

  /** Something else has ended the line on the screen, without us. */
  lineEnded(): void {
    if (this.#open === null) return;
    this.#open = null;
    this.#release();
  }

  get lineOpen(): boolean {
    return this.#open !== null;
  }

  /** Writes everything held and ends the line that is open then, so that something else can be written. */
  endLine(): void {
    while (this.#open !== null) this.#breakLine();
  }

  #emit(chunk: LaneChunk): Promise<void> {
    const atLineStart = this.#open === null;
    if (chunk.bytes.length > 0) this.#open = chunk.partial ? sourceOf(chunk) : null;
    return this.#writer.write(chunk.bytes, this.#prefixOf(chunk), atLineStart);
  }

  #hold(chunk: LaneChunk): Promise<void> {
    return new Promise((resolve) => {
      this.#held.push({ chunk, settle: resolve });
      this.#heldBytes += chunk.bytes.length;
      if (this.#heldBytes <= heldLimit) resolve();
      this.#timer ??= setTimeout(() => this.#breakLine(), lineTimeoutMs);
    });
  }

  /** Writes held chunks in their order, as far as open lines allow. */
  #release(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (;;) {
      const index = this.#held.findIndex(({ chunk }) => this.#open === null || this.#open === sourceOf(chunk));
      const [next] = index === -1 ? [] : this.#held.splice(index, 1);
      if (next === undefined) break;
      this.#heldBytes -= next.chunk.bytes.length;
      const taken = this.#emit(next.chunk);
      // Where the chunk was counted as taken already nobody looks at `taken`; the next output() reports a broken stream.
      taken.catch(() => {});
      next.settle(taken);
    }
    if (this.#held.length > 0) this.#timer = setTimeout(() => this.#breakLine(), lineTimeoutMs);
  }

  #breakLine(): void {
    this.#open = null;
    this.#writer.write(newline).catch(() => {});
    this.#release();
  }
}
