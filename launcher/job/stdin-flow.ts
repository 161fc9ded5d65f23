/**
 * Our stdin to rank 0. Read only once rank 0 runs, and only as fast as it takes it. A terminal is left alone while we are in the
 * background, because reading it would stop us.
 */
import { fstatSync, readFileSync } from 'node:fs';
import { isTerminal } from './terminal.ts';

/** Bytes that may be on their way to rank 0. */
const WINDOW_BYTES = 256 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** Major 1, minor 3: the same on every Linux. */
const DEV_NULL = 0x103;

/** Whether there is anything to read: a closed descriptor and /dev/null need no pipe. */
export function hasStdin(): boolean {
  try {
    const stat = fstatSync(0);
    return !(stat.isCharacterDevice() && stat.rdev === DEV_NULL);
  } catch {
    return false;
  }
}

/** Process group and the terminal's foreground group, fields 5 and 8 of /proc/self/stat. */
function isInForeground(): boolean {
  const fields = readFileSync('/proc/self/stat', 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ');
  return fields[2] === fields[5];
}

export class StdinFlow {
  readonly #send: (bytes: Uint8Array, end: boolean) => void;
  #onTheWay = 0;
  #state: 'waiting' | 'reading' | 'ended' = 'waiting';

  constructor(send: (bytes: Uint8Array, end: boolean) => void) {
    this.#send = send;
  }

  /** Rank 0 runs. Call again when the process continues: it may be in the foreground now. */
  start(): void {
    if (this.#state !== 'waiting' || (isTerminal(0) && !isInForeground())) return;
    this.#state = 'reading';
    const { stdin } = process;
    stdin.on('data', (bytes: Buffer) => this.#take(bytes));
    stdin.on('end', () => this.#end());
    stdin.on('error', () => this.#end());
    stdin.on('close', () => this.#end());
  }

  /** Rank 0 took some. */
  credit(bytes: number): void {
    this.#onTheWay = Math.max(0, this.#onTheWay - bytes);
    if (this.#state === 'reading' && this.#onTheWay < WINDOW_BYTES) process.stdin.resume();
  }

  /** Rank 0 reads no more. */
  stop(): void {
    if (this.#state === 'reading') {
      process.stdin.removeAllListeners('data');
      process.stdin.destroy();
    }
    this.#state = 'ended';
  }

  #take(bytes: Buffer): void {
    if (this.#state !== 'reading') return;
    for (let offset = 0; offset < bytes.length; offset += CHUNK_BYTES) {
      this.#send(bytes.subarray(offset, offset + CHUNK_BYTES), false);
    }
    this.#onTheWay += bytes.length;
    if (this.#onTheWay >= WINDOW_BYTES) process.stdin.pause();
  }

  #end(): void {
    if (this.#state !== 'reading') return;
    this.#state = 'ended';
    this.#send(new Uint8Array(0), true);
  }
}
