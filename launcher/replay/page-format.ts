/**
 * What the page of `ncclrun replay --html` has of a report: as JSON, with all operations as one series of numbers. It is written in page-data.ts and
 * read in page/, which runs in a browser: this file imports nothing.
 */

export interface PageVerdict {
  /** The words of the terminal. */
  readonly sentence: string;
  readonly details: readonly string[];
  readonly remedy: string | null;
}

interface PageHost {
  readonly host: string;
  /** Null: its agent did not answer. */
  readonly clock: { readonly offsetNs: number; readonly errorNs: number } | null;
}

interface PageRank {
  readonly rank: number;
  /** Index into `hosts`. */
  readonly host: number;
  readonly gpu: number | null;
}

export interface PageCommunicator {
  readonly id: string;
  readonly name: string | null;
  readonly epoch: number;
  readonly size: number;
  /** Ranks of the job that recorded it: `0-3,7`. */
  readonly members: string;
}

export interface PageData {
  readonly version: 1;
  readonly jobId: string | null;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly verdicts: readonly PageVerdict[];
  readonly hosts: readonly PageHost[];
  readonly ranks: readonly PageRank[];
  readonly communicators: readonly PageCommunicator[];
  /** Texts that operations name by index. */
  readonly calls: readonly string[];
  /** The last moment that anybody recorded, in units after the first operation. */
  readonly last: number;
  /** Operations left out to keep the file small. */
  readonly omitted: number;
  readonly redacted: boolean;
  /** The operations: numbers as LEB128, compressed by zlib, in base64. Of each communicator how many, then each (page-data.ts). */
  readonly operations: string;
}

/** Times are counted in so many nanoseconds. */
export const UNIT_NS = 100;

/** How far a rank came, as a number of the series. */
export const PAGE_STATES = ['ended', 'failed', 'running', 'queued', 'called', 'captured', 'cancelled'] as const;

/** Bits of an operation's first number. */
export const OperationFlag = { replay: 1, message: 2, differs: 4 } as const;

/** Whole numbers below 2^53 as LEB128, signed ones zigzag. */
export class NumberWriter {
  readonly bytes: number[] = [];

  put(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.bytes.push(128 + (rest % 128));
      rest = Math.floor(rest / 128);
    }
    this.bytes.push(rest);
  }

  putSigned(value: number): void {
    this.put(value < 0 ? -2 * value - 1 : 2 * value);
  }
}

export class NumberReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Behind the end: 0. */
  take(): number {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte % 128) * unit;
      if (byte < 128) return value;
    }
  }

  takeSigned(): number {
    const value = this.take();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }
}
