/** Speaks to a real guardian as an agent does, and keeps what it says. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import { join } from 'node:path';
import { encodeFrame, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import type { FrameFields } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind, OUTPUT_END, OUTPUT_PARTIAL, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { RankSpawn, SpawnOrder } from '../../control/messages/guardian.ts';
import { decodeExited, encodeCredit, encodeSignal } from '../../control/messages/payload.ts';
import type { Exited } from '../../control/messages/payload.ts';
import { encodeSpawnOrder } from '../../control/messages/spawn-order.ts';

/** Another build's, one with sanitizers say, where NCCLRUN_TEST_GUARDIAN names it. */
export const GUARDIAN =
  process.env['NCCLRUN_TEST_GUARDIAN'] ?? join(import.meta.dirname, '../../build/ncclrun-guardian');

export function rankOf(rank: number, ...argv: string[]): RankSpawn {
  return {
    rank,
    stdinPipe: false,
    interactive: false,
    mergeStderr: false,
    pmi: false,
    workingDirectory: '/tmp',
    argv,
    environment: { RANK: String(rank) },
    cpus: [],
  };
}

export function shell(rank: number, script: string): RankSpawn {
  return rankOf(rank, '/bin/sh', '-c', script);
}

interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class GuardianDriver implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly frames: Frame[] = [];
  /** Exit status of the guardian, or its signal; null while it runs. */
  outcome: number | string | null = null;
  stderr = '';
  readonly #socket: Duplex;
  #waiters: Waiter[] = [];
  #output = new Map<string, Buffer[]>();

  /** `words`: the guardian's arguments; `user`: who runs it, else who runs the tests. */
  constructor(words: readonly string[] = [], user: number | null = null) {
    const identity = user === null ? {} : { uid: user, gid: user };
    this.process = spawn(GUARDIAN, words, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], ...identity });
    const socket = this.process.stdio[3];
    if (!(socket instanceof Duplex)) throw new Error('the guardian has no socket');
    this.#socket = socket;
    const decoder = new FrameDecoder((frame) => this.#take(frame));
    socket.on('data', (chunk: Buffer) => {
      decoder.push(chunk);
      this.#look();
    });
    socket.on('error', () => undefined); // the guardian's end is seen by its exit
    this.process.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.process.on('close', (code, signal) => {
      this.outcome = code ?? signal ?? 'unknown';
      this.#look();
    });
  }

  send(kind: FrameKind, fields: FrameFields = {}): void {
    this.#socket.write(encodeFrame(makeFrame(kind, fields)));
  }

  raw(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  start(ranks: readonly RankSpawn[], order: Partial<SpawnOrder> = {}, shared: Record<string, string> = {}): void {
    const whole = { leaseMs: 0, outputCredit: 2 ** 40, runtimeDirectory: '', ...order, ranks };
    this.send(FrameKind.spawn, { payload: encodeSpawnOrder(whole, shared) });
  }

  credit(bytes: number): void {
    this.send(FrameKind.outputCredit, { payload: encodeCredit(bytes) });
  }

  signal(number: number, subject: number = ALL_RANKS): void {
    this.send(FrameKind.signal, { subject, payload: encodeSignal(number) });
  }

  /** Closes our end of the socket, as the kernel does for an agent that died. */
  vanish(): void {
    this.#socket.destroy();
  }

  /** Says nothing more, and listens on. */
  finish(): void {
    this.#socket.end();
  }

  pauseReading(): void {
    this.#socket.pause();
  }

  resumeReading(): void {
    this.#socket.resume();
  }

  of(kind: FrameKind, rank?: number): Frame[] {
    return this.frames.filter((frame) => frame.kind === kind && (rank === undefined || frame.subject === rank));
  }

  pid(rank: number): number {
    const [spawned] = this.of(FrameKind.spawned, rank);
    if (spawned === undefined) throw new Error(`rank ${rank} was not spawned`);
    return Buffer.from(spawned.payload).readUInt32LE(0);
  }

  exit(rank: number): Exited | null {
    const [exited] = this.of(FrameKind.exited, rank);
    return exited === undefined ? null : decodeExited(exited.payload);
  }

  output(rank: number, stream: 'stdout' | 'stderr' = 'stdout'): string {
    return Buffer.concat(this.#output.get(`${rank} ${stream}`) ?? []).toString('latin1');
  }

  outputEnded(rank: number): boolean {
    return this.of(FrameKind.output, rank).some((frame) => (frame.flags & OUTPUT_END) !== 0);
  }

  /** Resolves when `holds` is true; it is asked after everything that arrives. */
  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ holds, resolve, reject });
      this.#look();
    });
  }

  allExited(ranks: number): Promise<void> {
    return this.until(() => this.of(FrameKind.exited).length + this.of(FrameKind.spawnFailed).length === ranks);
  }

  /** Asks for the end; resolves with the guardian's exit status. */
  async end(): Promise<number | string | null> {
    this.send(FrameKind.end);
    return this.closed();
  }

  async closed(): Promise<number | string | null> {
    await this.until(() => this.outcome !== null);
    return this.outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.vanish();
    await this.closed();
  }

  #take(frame: Frame): void {
    this.frames.push(frame);
    if (frame.kind !== FrameKind.output) return;
    const endsWhole = frame.payload.length === 0 || frame.payload.at(-1) === 10;
    if (!endsWhole && (frame.flags & OUTPUT_PARTIAL) === 0) throw new Error('a cut line without OUTPUT_PARTIAL');
    const key = `${frame.subject} ${(frame.flags & OUTPUT_STDERR) === 0 ? 'stdout' : 'stderr'}`;
    const pieces = this.#output.get(key) ?? [];
    this.#output.set(key, pieces);
    pieces.push(Buffer.from(frame.payload));
  }

  #look(): void {
    const ready = this.#waiters.filter(({ holds }) => holds());
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter));
    for (const { resolve } of ready) resolve();
    if (this.outcome === null) return;
    const tooLate = new Error(`the guardian has ended (${this.outcome}) before this came true: ${this.stderr}`);
    for (const { reject } of this.#waiters) reject(tooLate);
  }
}
