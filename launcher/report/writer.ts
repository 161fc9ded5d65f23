/**
 * Writes to stdout or stderr without ever blocking the event loop (a blocked launcher sends no heartbeats, so its lease would expire),
 * in batches, and resolves when the system has taken the bytes.
 */
import type { Writable } from 'node:stream';
import { printableLines } from '../../control/printable.ts';
import { FailureError } from '../model/failure-error.ts';
import { Batch } from './batch.ts';
import { printablePainted, wrappedPainted } from '../text/colour.ts';

/** What Linux gives a pipe (pipe(7)). */
const PIPE_BYTES = 64 * 1024;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface WriterOptions {
  /** As Batch's. */
  readonly retainedBytes?: number;
  /** Columns of the terminal that this is; null: it is none. */
  readonly columns?: () => number | null;
  /** Called once, when more has to be written than a pipe holds. */
  readonly busy?: () => void;
}

export class Writer {
  readonly #open: () => Writable;
  #onBusy: (() => void) | null;
  #stream: Writable | null = null;
  readonly #batch: Batch;
  #waiters: Waiter[] = [];
  #busy = false;
  #broken: FailureError | null = null;
  #before: (() => Uint8Array | null) | null = null;

  readonly #columns: () => number | null;

  /** `open` is called at the first write: a job without output should not pay for setting up the streams. */
  constructor(open: () => Writable, { retainedBytes = 0, busy = () => {}, columns = () => null }: WriterOptions = {}) {
    this.#open = open;
    this.#onBusy = busy;
    this.#columns = columns;
    this.#batch = new Batch(retainedBytes);
  }

  /** The stream, set up for use. */
  get stream(): Writable {
    if (this.#stream === null) {
      this.#stream = this.#open();
      unblock(this.#stream);
      this.#stream.on('error', (error) => this.#break(error));
    }
    return this.#stream;
  }

  /** `before` is asked at every write for what has to come first. */
  interrupt(before: () => Uint8Array | null): void {
    this.#before = before;
  }

  /** Writes text of ours, in which what others chose (names, reasons, files) controls nothing. As write. */
  print(text: string): Promise<void> {
    return this.write(Buffer.from(printableLines(text)));
  }

  /** Like print, for text with colours of makePaint; long lines are broken between words on a terminal. */
  printPainted(text: string): Promise<void> {
    const safe = printablePainted(text);
    const columns = text === '' ? null : this.#columns();
    return this.write(Buffer.from(columns === null ? safe : wrappedPainted(safe, columns)));
  }

  /**
   * Writes the ranks' own bytes as they are; print writes text of ours.
   * `bytes`, which are the caller's again when this returns, with `prefix` (ASCII) at the start of every line; `atLineStart`: the first byte
   * begins a line. Rejects with a FailureError: interrupt when nobody reads any more (SIGPIPE) or the terminal is closed
   * (SIGHUP), output when the system refuses otherwise.
   */
  write(bytes: Uint8Array, prefix = '', atLineStart = true): Promise<void> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    if (bytes.length === 0) return Promise.resolve();
    const first = this.#before?.() ?? null;
    if (first !== null) this.#batch.append(first, '', true);
    this.#batch.append(bytes, prefix, atLineStart);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (!this.#busy) this.#send();
    });
  }

  /** Resolves when everything written so far has been taken, or never will be. */
  async flush(): Promise<void> {
    while (this.#busy) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.push({ resolve, reject: () => resolve() });
      await promise;
    }
  }

  #send(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    if (this.#batch.empty) {
      for (const waiter of waiters) waiter.resolve();
      return;
    }
    this.#busy = true;
    const stream = this.stream;
    const taken = (error?: Error | null): void => {
      this.#busy = false;
      this.#batch.giveBack();
      if (error) this.#break(error);
      for (const waiter of waiters) {
        if (this.#broken === null) waiter.resolve();
        else waiter.reject(this.#broken);
      }
      if (this.#broken === null) this.#send();
    };
    const bytes = this.#batch.take();
    if (bytes.length > PIPE_BYTES) {
      this.#onBusy?.();
      this.#onBusy = null;
    }
    stream.write(bytes, taken);
  }

  #break(error: Error): void {
    this.#broken ??= failureOf(error, this.#stream);
    const waiters = this.#waiters;
    this.#batch.clear();
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(this.#broken);
  }
}

function failureOf(error: Error, stream: Writable | null): FailureError {
  const code = 'code' in error ? error.code : null;
  if (code === 'EPIPE' || code === 'ECONNRESET' || code === 'ERR_STREAM_DESTROYED') {
    return new FailureError({ type: 'interrupt', signal: 'SIGPIPE' }, { cause: error });
  }
  // A closed terminal returns EIO, perhaps before SIGHUP arrives.
  if (code === 'EIO' && stream !== null && 'isTTY' in stream && stream.isTTY === true) {
    return new FailureError({ type: 'interrupt', signal: 'SIGHUP' }, { cause: error });
  }
  return new FailureError({ type: 'output', message: error.message }, { cause: error });
}

/** Node makes terminals blocking; ^S would then stop the launcher's heartbeats. The handle is Node's own, so look before use. */
function unblock(stream: Writable): void {
  const handle: unknown = 'isTTY' in stream ? Reflect.get(stream, '_handle') : null;
  if (typeof handle !== 'object' || handle === null || !('setBlocking' in handle)) return;
  if (typeof handle.setBlocking === 'function') handle.setBlocking(false);
}
