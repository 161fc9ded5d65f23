/**
 * One line at the bottom of the terminal, redrawn at most ten times a second. Whatever else is written to the terminal takes it away
 * first, and it comes back when it is quiet; so it is never among lines, and never in a file or pipe.
 */
import type { Paint } from '../text/colour.ts';
import type { Writer } from './writer.ts';

/** A job that is over by then has no need of it. */
const FIRST_MS = 400;
const STARTING_MS = 100;
const RUNNING_MS = 500;
/** After something was written: who prints all the time needs no sign of life. */
const QUIET_MS = 300;
/** To the line's start, and clear to its end (ECMA-48, EL). */
const erasing = Buffer.from('\r\u001B[K');

/** What the line says. */
interface LiveSource {
  /** It changes fast. */
  readonly starting: boolean;
  /** Empty: nothing. `now`: milliseconds since 1970. */
  line(columns: number, now: number): string;
}

interface LiveOptions {
  readonly text: LiveSource;
  readonly stderr: Writer;
  /** Null where it does not go to the same terminal. */
  readonly stdout: Writer | null;
  /** Of the terminal. */
  readonly columns: () => number;
  /** The cursor stands at a line's start, and the terminal is ours to write to. */
  readonly mayDraw: () => boolean;
  readonly paint: () => Paint;
}

export class Live {
  readonly #options: LiveOptions;
  #drawn = '';
  #drawing = false;
  #quietSince = 0;
  #timer: NodeJS.Timeout | null;

  constructor(options: LiveOptions) {
    this.#options = options;
    for (const writer of [options.stderr, options.stdout]) writer?.interrupt(() => this.#interrupted());
    this.#timer = this.#later(FIRST_MS);
  }

  /** The line says whom the start waits for; nobody else needs to. */
  get showsStart(): boolean {
    return this.#timer !== null && this.#options.text.starting;
  }

  /** Takes the line away for good. */
  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#drawn !== '') this.#write('');
  }

  /** What another writer has to write before its own: it stands on our line. */
  #interrupted(): Uint8Array | null {
    if (this.#drawing) return null;
    this.#quietSince = Date.now();
    if (this.#drawn === '') return null;
    this.#drawn = '';
    return erasing;
  }

  #tick(): void {
    const now = Date.now();
    const { columns, mayDraw, paint, text } = this.#options;
    const line = text.line(columns() - 1, now);
    if (line !== this.#drawn && now - this.#quietSince >= QUIET_MS && mayDraw()) this.#write(line, paint());
    this.#timer = this.#later(this.#options.text.starting ? STARTING_MS : RUNNING_MS);
  }

  #write(line: string, paint: Paint | null = null): void {
    this.#drawn = line;
    this.#drawing = true;
    const text = Buffer.from(paint === null ? line : paint('dim', line));
    this.#options.stderr.write(Buffer.concat([erasing, text])).catch(() => {});
    this.#drawing = false;
  }

  #later(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => this.#tick(), milliseconds).unref();
  }
}
