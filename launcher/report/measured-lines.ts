/** What a measuring program says on rank 0's stdout: lines of its own, and what is none of them. */
import type { OutputChunk } from '../model/event.ts';

interface TakenLines<Line> {
  readonly lines: readonly Line[];
  /** Other output, as stderr has it; null: there is none. */
  readonly others: OutputChunk | null;
}

/** The object that a line of a measuring program is; null: it is somebody else's output. */
export function objectOfLine(text: string): unknown {
  if (!text.startsWith('{')) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export class MeasuredLines<Line> {
  readonly #parse: (line: string) => Line | null;
  #text = '';

  /** `parse`: null where a line is not the program's. */
  constructor(parse: (line: string) => Line | null) {
    this.#parse = parse;
  }

  /** null: the chunk is nothing of the measurement. */
  take(chunk: OutputChunk): TakenLines<Line> | null {
    if (chunk.stream !== 'stdout' || chunk.rank !== 0) return null;
    this.#text += Buffer.from(chunk.bytes).toString('utf8');
    const all = this.#text.split('\n');
    this.#text = all.pop() ?? '';
    const lines: Line[] = [];
    const others: string[] = [];
    for (const line of all) {
      const parsed = this.#parse(line);
      if (parsed === null) others.push(`${line}\n`);
      else lines.push(parsed);
    }
    const bytes = Buffer.from(others.join(''));
    return { lines, others: others.length === 0 ? null : { ...chunk, stream: 'stderr', bytes, partial: false } };
  }
}
