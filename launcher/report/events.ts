/** --events: one line of JSON per event, each with its schema's version. */
import { open } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import type { Writable } from 'node:stream';
import { printableLines } from '../../control/printable.ts';
import { EVENT_SCHEMA_VERSION, type JobEvent } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import type { Reporter } from '../model/types.ts';
import { unwrittenFile } from './unwritten.ts';

export class EventsReporter implements Reporter {
  readonly #stream: Writable;
  readonly #finished: Promise<void>;
  #unwritten: Failure | null = null;

  constructor(stream: Writable, path: string) {
    this.#stream = stream;
    this.#finished = finished(stream);
    // A full disk must not end the job.
    this.#finished.catch((error: unknown) => (this.#unwritten = unwrittenFile('--events', path, error)));
  }

  /** Rejects as node:fs does. */
  static async open(path: string): Promise<EventsReporter> {
    const file = await open(path, 'w');
    return new EventsReporter(file.createWriteStream(), path);
  }

  event(event: JobEvent): void {
    if (this.#stream.writable)
      this.#stream.write(printableLines(`${JSON.stringify({ schemaVersion: EVENT_SCHEMA_VERSION, ...event })}\n`));
  }

  async output(): Promise<void> {}

  async result(): Promise<void> {
    this.#stream.end();
    await this.#finished.catch(() => {});
  }

  unwritten(): Failure | null {
    return this.#unwritten;
  }
}
