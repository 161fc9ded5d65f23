/**
 * The last output of a job, kept in its launcher's memory for `ncclrun logs` and `attach`. What serves them is loaded when the job has lasted for a
 * moment, so that short jobs do not pay for it.
 */
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobRequest, JobResult, Reporter } from '../model/types.ts';
import type { FollowServer } from './follow-server.ts';
import type { JobNote } from './note.ts';

const KEPT_BYTES = 1024 * 1024;
/** Counted for each piece beside its bytes. */
const PIECE_BYTES = 128;
const BEFORE_SERVING_MS = 100;

export type Kept =
  | { readonly type: 'output'; readonly chunk: OutputChunk }
  | { readonly type: 'event'; readonly event: JobEvent };

/** How the launcher's own terminal shows output. */
export type JobLook = Pick<JobRequest, 'tagOutput' | 'timestampOutput' | 'onHang'>;

/** What somebody who comes later is told. */
export interface KeptOutput {
  readonly started: JobEvent;
  readonly pieces: readonly Kept[];
  /** Bytes of output that came before and are not kept. */
  readonly dropped: number;
}

/** Events that the terminal shows; who comes later sees these, too. */
const SHOWN: ReadonlySet<JobEvent['type']> = new Set(['notice', 'failure', 'restart', 'shrink', 'hang', 'xid']);

export class JobTail implements Reporter {
  readonly #look: JobLook;
  readonly #note: JobNote;
  #started: JobEvent | null = null;
  #pieces: Kept[] = [];
  /** Pieces at the beginning that are dropped already. */
  #first = 0;
  #bytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | null = null;
  #server: FollowServer | null = null;
  #hasEnded = false;

  constructor(look: JobLook, note: JobNote) {
    this.#look = look;
    this.#note = note;
  }

  get kept(): KeptOutput | null {
    const started = this.#started;
    return started === null ? null : { started, pieces: this.#pieces.slice(this.#first), dropped: this.#dropped };
  }

  event(event: JobEvent): void {
    if (event.type === 'job-started') {
      this.#started = event;
      this.#timer = setTimeout(() => void this.#serve(event.jobId), BEFORE_SERVING_MS).unref();
    } else if (SHOWN.has(event.type)) this.#keep({ type: 'event', event }, 0);
    this.#server?.event(event);
  }

  /** Nobody who follows holds up the job. */
  output(chunk: OutputChunk): Promise<void> {
    if (chunk.bytes.length > 0) {
      const own = { ...chunk, bytes: Buffer.from(chunk.bytes.subarray(-KEPT_BYTES)) };
      this.#dropped += chunk.bytes.length - own.bytes.length;
      this.#keep({ type: 'output', chunk: own }, own.bytes.length);
      this.#server?.output(own);
    }
    return Promise.resolve();
  }

  async result(result: JobResult): Promise<void> {
    this.#hasEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#server?.close(result);
  }

  #keep(piece: Kept, bytes: number): void {
    this.#pieces.push(piece);
    this.#bytes += bytes + PIECE_BYTES;
    while (this.#bytes > KEPT_BYTES + PIECE_BYTES) {
      const oldest = this.#pieces[this.#first];
      const length = oldest?.type === 'output' ? oldest.chunk.bytes.length : 0;
      this.#dropped += length;
      this.#bytes -= length + PIECE_BYTES;
      this.#first += 1;
    }
    if (this.#first * 2 <= this.#pieces.length) return;
    this.#pieces = this.#pieces.slice(this.#first);
    this.#first = 0;
  }

  /** A job that cannot be followed goes on all the same. */
  async #serve(jobId: string): Promise<void> {
    const { FollowServer } = await import('./follow-server.ts');
    const server = await FollowServer.open(jobId, this.#look, () => this.kept);
    if (server === null) return;
    if (this.#hasEnded) return void server.close(null);
    this.#server = server;
    this.#note.serves(server.place);
  }
}
