/** The kernel's log from now on (Linux, Documentation/ABI/testing/dev-kmsg). kernel.dmesg_restrict decides whether a user may read it. */
import { closeSync, readSync } from 'node:fs';
import type { Native } from '../engine/native.ts';

/** Longer ones there are not: CONSOLE_EXT_LOG_MAX. */
const RECORD_BYTES = 8192;
/** Taken at a time; the rest is for the next time. */
const MAX_RECORDS = 2000;

interface KernelRecord {
  /** Milliseconds since the machine's start, nearly as CLOCK_MONOTONIC counts them. */
  readonly sinceBootMs: number;
  /** Its first line. */
  readonly text: string;
}

export class KernelLog {
  readonly #buffer = Buffer.alloc(RECORD_BYTES);
  #descriptor: number | null;

  /** @throws NativeError where it may not be read */
  constructor(native: Pick<Native, 'kernelLogOpen'>) {
    this.#descriptor = native.kernelLogOpen();
  }

  /** What was written since the last call. */
  read(): KernelRecord[] {
    const records: KernelRecord[] = [];
    for (let count = 0; count < MAX_RECORDS && this.#descriptor !== null; count++) {
      try {
        const length = readSync(this.#descriptor, this.#buffer);
        const record = parseRecord(this.#buffer.toString('utf8', 0, length));
        if (record !== null) records.push(record);
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : null;
        if (code === 'EPIPE') continue; // records were overwritten before we came
        if (code !== 'EAGAIN') this.close();
        break;
      }
    }
    return records;
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/** `priority,number,microseconds,flags[,…];text`, then lines of tags. */
export function parseRecord(record: string): KernelRecord | null {
  const [, microseconds, text] = /^\d+,\d+,(\d{1,16}),[^;]*;([^\n]*)/u.exec(record) ?? [];
  return text === undefined ? null : { sinceBootMs: Number(microseconds) / 1000, text };
}
