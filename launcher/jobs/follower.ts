/** One who follows a job: output is made as the launcher's own terminal has it, and dropped where the reader is too slow. */
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult } from '../model/types.ts';
import { PlainReporter } from '../report/plain.ts';
import type { StandardStreams } from '../report/standard-streams.ts';
import { Writer } from '../report/writer.ts';
import { makeReaderPaint } from '../text/colour.ts';
import { FollowKind, followFrame, type FollowRequest } from './follow-wire.ts';
import type { JobLook, KeptOutput } from './tail.ts';

/** Output that waits for a reader. */
const QUEUE_BYTES = 4 * 1024 * 1024;
/** A reader who has taken nothing for so long is not waited for at the end of the job. */
const STALL_MS = 100;

export class Follower {
  readonly #socket: Socket;
  readonly #request: FollowRequest;
  readonly #streams: StandardStreams;
  readonly #reporter: PlainReporter;
  #queued = 0;
  #dropped = 0;
  #inFlight = 0;
  #movedAt = 0;

  constructor(socket: Socket, request: FollowRequest, look: JobLook) {
    this.#socket = socket;
    this.#request = request;
    this.#streams = this.#makeStreams();
    this.#reporter = new PlainReporter({
      streams: this.#streams,
      tagOutput: look.tagOutput,
      timestamps: look.timestampOutput,
      shown: true,
      shownRanks: request.ranks,
      stdoutTaken: false,
      live: false,
      fold: false,
      verbose: false,
      quiet: false,
      hangFails: look.onHang === 'abort' || look.onHang === 'restart',
      paint: (isTerminal) => makeReaderPaint(isTerminal, request.environment),
    });
  }

  begin({ started, pieces, dropped }: KeptOutput): void {
    this.#send(followFrame(FollowKind.begun, Buffer.alloc(0)), () => undefined);
    this.#reporter.event(started);
    if (!this.#request.kept) return;
    if (dropped > 0) this.#note(`${dropped} bytes of output came before this and are not kept`);
    for (const piece of pieces) {
      if (piece.type === 'event') this.event(piece.event);
      else this.output(piece.chunk);
    }
  }

  event(event: JobEvent): void {
    this.#reporter.event(event);
  }

  output(chunk: OutputChunk): void {
    const { length } = chunk.bytes;
    if (this.#queued + length > QUEUE_BYTES) {
      this.#dropped += length;
      return;
    }
    this.#queued += length;
    this.#reporter.output(chunk).then(
      () => this.#taken(length),
      () => this.#socket.destroy(),
    );
  }

  /** `result`: of the job; null: it runs. Resolves when a reader who reads has everything. */
  async end(result: JobResult | null): Promise<void> {
    const { promise: isStalled, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (this.#inFlight > 0 && performance.now() - this.#movedAt > STALL_MS) resolve();
    };
    const watch = result === null ? null : setInterval(look, STALL_MS / 4);
    if (result !== null) look();
    this.#socket.once('close', resolve);
    await Promise.race([this.#finish(result), isStalled]);
    if (watch !== null) clearInterval(watch);
    this.#socket.destroy();
  }

  async #finish(result: JobResult | null): Promise<void> {
    this.#sayDropped();
    if (result !== null) await this.#reporter.result(result);
    await Promise.all([this.#streams.stdout.flush(), this.#streams.stderr.flush()]);
    const last =
      result === null
        ? followFrame(FollowKind.shown, Buffer.alloc(0))
        : followFrame(FollowKind.ended, Buffer.of(result.exitCode));
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    this.#send(last, () => resolve());
    await sent;
  }

  #taken(length: number): void {
    this.#queued -= length;
    if (this.#queued === 0) this.#sayDropped();
  }

  #sayDropped(): void {
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#note(`${dropped} bytes of output are left out here: this reader was too slow for them`);
  }

  #note(message: string): void {
    this.#reporter.event({ type: 'notice', time: Date.now(), message });
  }

  #send(frame: Uint8Array, done: (error?: Error | null) => void): void {
    if (this.#inFlight === 0) this.#movedAt = performance.now();
    this.#inFlight += 1;
    this.#socket.write(frame, (error) => {
      this.#inFlight -= 1;
      this.#movedAt = performance.now();
      done(error);
    });
  }

  #makeStreams(): StandardStreams {
    const { stdoutIsTerminal, stderrIsTerminal, columns } = this.#request;
    const writable = (kind: FollowKind): Writable =>
      new Writable({ write: (bytes: Uint8Array, _encoding, done) => this.#send(followFrame(kind, bytes), done) });
    return {
      stdout: new Writer(() => writable(FollowKind.stdout)),
      stderr: new Writer(() => writable(FollowKind.stderr), { columns: () => columns }),
      stdoutIsTerminal: () => stdoutIsTerminal,
      stderrIsTerminal: () => stderrIsTerminal,
      columns: () => columns ?? 80,
      onOneTerminal: () => stdoutIsTerminal && stderrIsTerminal,
    };
  }
}
