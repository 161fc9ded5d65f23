/** Text of a batch file, and what is wrong at a place of it. */
import type { FailureError } from '../../model/failure-error.ts';
import type { SourcePosition } from '../../model/failure.ts';
import { nearest } from '../../text/nearest.ts';
import { usageError } from '../../model/usage-error.ts';
import type { Item, Span } from './item.ts';

/** Characters of a value that a message repeats. */
const SHOWN_CHARACTERS = 60;

export class Source {
  readonly path: string;
  readonly text: string;
  /** Offset at which each line begins. */
  readonly #lines: readonly number[];

  constructor(path: string, text: string) {
    this.path = path;
    this.text = text;
    this.#lines = [0, ...Array.from(text.matchAll(/\n/gu), ({ index }) => index + 1)];
  }

  /** Number of the line in which an offset lies, from 1. */
  lineOf(offset: number): number {
    let [low, high] = [0, this.#lines.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lines[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  /** The part of the span that lies in its first line. */
  position({ start, end }: Span): SourcePosition {
    const line = this.lineOf(start);
    const begin = this.#lines[line - 1] ?? 0;
    const text = this.text.slice(begin, (this.#lines[line] ?? this.text.length + 1) - 1).replace(/\r$/u, '');
    const column = Math.min(start - begin, text.length) + 1;
    const length = Math.max(1, Math.min(end - start, text.length - column + 1));
    return { source: this.path, line, column, text, length };
  }

  mistake(span: Span, message: string, remedy: string | null): FailureError {
    return usageError(message, remedy, this.position(span));
  }

  /** Where a piece of a value's text stands; the whole value if escapes or folded lines hide the piece. */
  within(item: Span, piece: string): Span {
    const found = piece === '' ? -1 : this.text.slice(item.start, item.end).indexOf(piece);
    return found === -1 ? item : { start: item.start + found, end: item.start + found + piece.length };
  }

  /** A value as a message repeats it: on one line, and not longer than a message is read. */
  shown(item: Item): string {
    if (item.type === 'map') return 'a map';
    if (item.type === 'list') return 'a list';
    if (item.value === null) return 'empty';
    const text = typeof item.value === 'string' ? JSON.stringify(item.value) : item.text;
    return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}...`;
  }
}

/** `did you mean "nodes"?`, else the words that are known. */
export function meant(word: string, known: readonly string[], list = 'known'): string {
  const guess = nearest(word.toLowerCase(), known);
  return guess === null ? `${list}: ${known.join(', ')}` : `did you mean "${guess}"?`;
}
