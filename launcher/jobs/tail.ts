/**
 * The last output of a job, kept in its launcher's memory for `ncclrun logs` and `attach`. What serves them is loaded when the job has lasted for a
 * moment, so that short jobs do not pay for it.
 */
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobStatus } from '../model/status.ts';
import type { Recorder } from '../model/recorder.ts';
import type { StackReport } from '../model/stack.ts';
import type { JobRequest, JobResult, Reporter } from '../model/types.ts';
import { ByteRing } from './byte-ring.ts';
import type { FollowServer } from './follow-server.ts';
import type { JobNote } from './note.ts';

const KEPT_BYTES = 1024 * 1024;
const MAX_PIECES = 8192;
const BEFORE_SERVING_MS = 100;

type Kept =
  | { readonly type: 'output'; readonly chunk: OutputChunk }
  | { readonly type: 'event'; readonly event: JobEvent };

/** `start`: of its bytes in the ring; of an event, how many came before. */
type Piece =
  | {
      readonly type: 'output';
      readonly chunk: Omit<OutputChunk, 'bytes'>;
      readonly start: number;
      readonly length: number;
    }
  | { readonly type: 'event'; readonly event: JobEvent; readonly start: number };

/** How the launcher's own terminal shows output. */
export type JobLook = Pick<JobRequest, 'tagOutput' | 'timestampOutput' | 'onHang'>;

/** What a reader gets first who connects later. */
export interface KeptOutput {
  readonly started: JobEvent;
  readonly pieces: readonly Kept[];
  /** Bytes of output that came before and are not kept. */
  readonly dropped: number;
}

/** Events that the terminal shows; later readers see these, too. */
const SHOWN: ReadonlySet<JobEvent['type']> = new Set([
  'notice',
  'failure',
  'restart',
  'shrink',
  'hang',
  'hang-stacks',
  'xid',
]);

export class JobTail implements Reporter {
  readonly #look: JobLook;
  readonly #note: JobNote;
  #started: JobEvent | null = null;
  readonly #ring = new ByteRing(KEPT_BYTES);
  #written = 0;
  #pieces: Piece[] = [];
  /** Pieces at the beginning that are dropped already. */
  #first = 0;
  #timer: NodeJS.Timeout | null = null;
  #server: FollowServer | null = null;
  #readRecorder: (() => Promise<Recorder>) | null = null;
  #readStacks: ((ranks: readonly number[] | null) => Promise<StackReport>) | null = null;
  #readStatus: (() => Promise<JobStatus>) | null = null;
  #hasEnded = false;

  constructor(look: JobLook, note: JobNote) {
    this.#look = look;
    this.#note = note;
  }

  get kept(): KeptOutput | null {
    const started = this.#started;
    if (started === null) return null;
    const pieces = this.#pieces.slice(this.#first);
    return { started, pieces: pieces.map((piece) => this.#copy(piece)), dropped: pieces[0]?.start ?? this.#written };
  }

  recorders(read: () => Promise<Recorder>): void {
    this.#readRecorder = read;
  }

  stacks(read: (ranks: readonly number[] | null) => Promise<StackReport>): void {
    this.#readStacks = read;
  }

  status(read: () => Promise<JobStatus>): void {
    this.#readStatus = read;
  }

  event(event: JobEvent): void {
    if (event.type === 'job-started') {
      this.#started = event;
      this.#timer = setTimeout(() => void this.#serve(event.jobId), BEFORE_SERVING_MS).unref();
    } else if (SHOWN.has(event.type)) this.#keep({ type: 'event', event, start: this.#written });
    this.#server?.event(event);
  }

  /** Nobody who follows holds up the job. */
  output(chunk: OutputChunk): Promise<void> {
    const { bytes, ...described } = chunk;
    if (bytes.length === 0) return Promise.resolve();
    const last = bytes.subarray(-KEPT_BYTES);
    const start = this.#ring.append(bytes) + bytes.length - last.length;
    this.#written += bytes.length;
    this.#keep({ type: 'output', chunk: described, start, length: last.length });
    if (this.#server?.isFollowed === true) this.#server.output({ ...described, bytes: Buffer.from(last) });
    return Promise.resolve();
  }

  async result(result: JobResult): Promise<void> {
    this.#hasEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#server?.close(result);
  }

  #keep(piece: Piece): void {
    this.#pieces.push(piece);
    while (this.#isOver(this.#pieces[this.#first])) this.#first += 1;
    if (this.#first * 2 <= this.#pieces.length) return;
    this.#pieces = this.#pieces.slice(this.#first);
    this.#first = 0;
  }

  #isOver(oldest: Piece | undefined): boolean {
    if (oldest === undefined) return false;
    return oldest.start < this.#ring.first || this.#pieces.length - this.#first > MAX_PIECES;
  }

  #copy(piece: Piece): Kept {
    if (piece.type === 'event') return piece;
    const bytes = this.#ring.copy(piece.start, piece.length);
    return { type: 'output', chunk: { ...piece.chunk, bytes } };
  }

  /** A job that cannot be followed goes on all the same. */
  async #serve(jobId: string): Promise<void> {
    const { FollowServer } = await import('./follow-server.ts');
    const server = await FollowServer.open(jobId, {
      look: this.#look,
      keptNow: () => this.kept,
      recorderNow: async () => (await this.#readRecorder?.()) ?? null,
      stacksNow: async (ranks) => (await this.#readStacks?.(ranks)) ?? null,
      statusNow: async () => (await this.#readStatus?.()) ?? null,
    });
    if (server === null) return;
    if (this.#hasEnded) return void server.close(null);
    this.#server = server;
    this.#note.serves(server.place);
  }
}
