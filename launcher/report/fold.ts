/**
 * --fold: equal lines of several ranks become one. A line waits until every rank that may still write the same has either done so or
 * written something after it, at most WINDOW_MS. A rank's lines keep their order, nothing is dropped.
 */
import type { OutputChunk } from '../model/event.ts';
import type { Lane, LaneChunk } from './lane.ts';

const WINDOW_MS = 100;
/** Different lines held beyond this are written at once: they are not alike, and their ranks wait for credit. */
const HELD_BYTES = 1 << 20;

/** A line and who wrote it. Groups are numbered in the order in which they are written. */
interface Group {
  readonly index: number;
  readonly line: string;
  readonly due: number;
  readonly first: OutputChunk;
  readonly writers: OutputChunk[];
  readonly taken: PromiseWithResolvers<void>;
}

export class Fold {
  readonly #lane: Lane;
  readonly #live: Set<number>;
  /** The last group that a rank wrote to. */
  readonly #last = new Map<number, number>();
  /** How many live ranks wrote last to a group that is still held. */
  readonly #at = new Map<number, number>();
  /** Live ranks that may still write to the first group held. */
  #behind: number;
  #groups: Group[] = [];
  readonly #byLine = new Map<string, Group[]>();
  #head = 0;
  #heldBytes = 0;
  /** Sources in the middle of a line, which goes through as it comes. */
  readonly #open = new Set<number>();
  #timer: NodeJS.Timeout | null = null;

  /** `ranks`: those whose lines come here. */
  constructor(lane: Lane, ranks: Iterable<number>) {
    this.#lane = lane;
    this.#live = new Set(ranks);
    this.#behind = this.#live.size;
  }

  /** As Lane.output. */
  output(chunk: OutputChunk): Promise<void> {
    const text = Buffer.from(chunk.bytes.buffer, chunk.bytes.byteOffset, chunk.bytes.byteLength).toString('latin1');
    const begin = this.#open.has(chunk.rank) ? text.indexOf('\n') + 1 : 0;
    const end = text.lastIndexOf('\n') + 1;
    if (this.#open.has(chunk.rank) && end === 0) return this.#lane.output(chunk);
    let taken = Promise.resolve();
    if (begin > 0) {
      this.#open.delete(chunk.rank);
      taken = this.#lane.output(piece(chunk, text.slice(0, begin)));
    }
    if (end > begin) taken = this.#lines(chunk, text.slice(begin, end - 1));
    if (end < text.length) {
      this.flush();
      this.#open.add(chunk.rank);
      taken = this.#lane.output(piece(chunk, text.slice(end)));
    }
    return taken;
  }

  /** It writes no more; nobody waits for it. */
  rankEnded(rank: number): void {
    if (!this.#live.delete(rank)) return;
    const last = this.#last.get(rank) ?? -1;
    if (last < this.#head) this.#behind -= 1;
    else this.#count(last, -1);
    this.#settle(false);
  }

  /** Writes everything held. */
  flush(): void {
    this.#settle(true);
  }

  #lines(chunk: OutputChunk, text: string): Promise<void> {
    let group: Group | null = null;
    for (const line of text.split('\n')) {
      group = this.#groupFor(chunk, line);
      group.writers.push(chunk);
      this.#move(chunk.rank, group.index);
    }
    this.#settle(this.#heldBytes > HELD_BYTES);
    return group === null ? Promise.resolve() : group.taken.promise;
  }

  /** The first group of this line that comes after all that the rank wrote; else a new one. */
  #groupFor(chunk: OutputChunk, line: string): Group {
    const alike = this.#byLine.get(line) ?? [];
    const last = this.#last.get(chunk.rank) ?? -1;
    const found = alike.find(({ index }) => index > last);
    if (found !== undefined) return found;
    const taken = Promise.withResolvers<void>();
    taken.promise.catch(() => {}); // whoever wrote the line looks at it, or at a later one
    const index = this.#head + this.#groups.length;
    const group = { index, line, due: Date.now() + WINDOW_MS, first: chunk, writers: [], taken };
    this.#groups.push(group);
    this.#byLine.set(line, [...alike, group]);
    this.#heldBytes += line.length;
    return group;
  }

  #move(rank: number, index: number): void {
    const last = this.#last.get(rank) ?? -1;
    this.#last.set(rank, index);
    if (!this.#live.has(rank)) return;
    if (last < this.#head) this.#behind -= 1;
    else this.#count(last, -1);
    this.#count(index, 1);
  }

  #count(index: number, change: number): void {
    this.#at.set(index, (this.#at.get(index) ?? 0) + change);
  }

  #settle(everything: boolean): void {
    let done = 0;
    for (const group of this.#groups) {
      if (!everything && this.#behind > 0) break;
      done += 1;
      this.#head += 1;
      this.#behind += this.#at.get(group.index) ?? 0;
      this.#at.delete(group.index);
      this.#write(group);
    }
    if (done > 0) this.#groups = this.#groups.slice(done);
    this.#wait();
  }

  #write(group: Group): void {
    const { line, first, writers, taken } = group;
    const others = (this.#byLine.get(line) ?? []).filter((other) => other !== group);
    if (others.length === 0) this.#byLine.delete(line);
    else this.#byLine.set(line, others);
    this.#heldBytes -= line.length;
    taken.resolve(this.#lane.output({ ...piece(first, `${line}\n`), writers }));
  }

  #wait(): void {
    const [first] = this.#groups;
    if (first === undefined || this.#timer !== null) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#settleDue();
      },
      Math.max(0, first.due - Date.now()),
    );
  }

  #settleDue(): void {
    const now = Date.now();
    const later = this.#groups.findIndex(({ due }) => due > now);
    const kept = later === -1 ? [] : this.#groups.splice(later);
    this.#settle(true);
    this.#groups = kept;
    this.#settle(false);
  }
}

function piece(chunk: OutputChunk, text: string): LaneChunk {
  return { ...chunk, bytes: Buffer.from(text, 'latin1'), partial: !text.endsWith('\n') };
}
