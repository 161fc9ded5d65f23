/** The last lines that each rank wrote to stderr: they mostly say why it failed, and other ranks' lines may bury them. */

/** Of each rank; what is older is forgotten. */
const KEPT_BYTES = 4096;
const KEPT_LINES = 10;
const LINE_CHARACTERS = 400;

export class LastWords {
  readonly #kept = new Map<number, Buffer>();

  /** A piece of a rank's stderr. */
  add(rank: number, bytes: Uint8Array): void {
    const fresh = bytes.subarray(-KEPT_BYTES);
    const earlier = this.#kept.get(rank) ?? new Uint8Array(0);
    const kept = earlier.subarray(Math.max(0, earlier.length + fresh.length - KEPT_BYTES));
    this.#kept.set(rank, Buffer.concat([kept, fresh])); // a copy: the piece is a view into something much larger
  }

  /** At most ten lines without control characters and empty ends; of a line that was written over with \r the last state. */
  of(rank: number): readonly string[] {
    const kept = this.#kept.get(rank);
    if (kept === undefined) return [];
    const text = kept.toString('utf8').trimEnd();
    if (text === '') return [];
    const lines = text.split('\n');
    if (kept.length >= KEPT_BYTES && lines.length > 1) lines.shift(); // it begins somewhere in the middle
    return lines.slice(-KEPT_LINES).map(plain);
  }
}

const ESCAPE = String.fromCodePoint(0x1b);
/** ESC [ … letter: colours and cursor movements (ECMA-48, 5.4); and ESC with another character. */
const escapes = new RegExp(`${ESCAPE}(?:\\[[0-9:;<=>?]*[ -/]*[@-~]|.)`, 'gu');
/** All but the tab. */
const controls = /[^\P{Cc}\t]/gu;

function plain(line: string): string {
  const written = line.replaceAll(escapes, '').replace(/\r+$/u, '');
  const last = written.slice(written.lastIndexOf('\r') + 1).replaceAll(controls, '');
  return last.length > LINE_CHARACTERS ? `${last.slice(0, LINE_CHARACTERS)}…` : last;
}
