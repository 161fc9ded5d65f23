/** Who is connected to the bootstrap socket, and who they are. */
import { decodeEngineHello, encodeWelcome } from '../../control/messages/bootstrap-codec.ts';
import type { Welcome } from '../../control/messages/bootstrap-codec.ts';
import { BOOTSTRAP_PROTOCOL, NcclResult } from '../../control/messages/bootstrap.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Native, NativeHandle } from '../engine/native.ts';
import type { Engine, EngineChannel } from './engine.ts';
import { findAncestor } from './process-tree.ts';
import { decodeTelemetry } from './telemetry.ts';
import type { TelemetryPage } from './telemetry.ts';

/** Pages of processes that have ended are kept for whoever asks what they did last; this many. */
const KEPT_PAGES = 1024;
/** Flight recorders of these; each is up to 276 KiB of memory, and 256 KiB more for each GPU whose graphs were replayed. */
const KEPT_RECORDERS = 256;
/** Of one process; each has slots for 40 communicators. */
const MAX_PAGES = 4096;

export class Engines {
  readonly #native: Native;
  readonly #channel: EngineChannel;
  readonly #welcome: Welcome;
  /** pid of every connection, introduced or not. */
  readonly #pids = new Map<number, number>();
  readonly #engines = new Map<number, Engine>();
  /** pid → rank of the processes that the guardian started. */
  readonly #spawned = new Map<number, number>();
  readonly #pagesOfEnded: Uint8Array[] = [];
  readonly #recordersOfEnded: Uint8Array[] = [];
  readonly #deserted: () => void;

  /** `deserted`: the last connection is forgotten. */
  constructor(native: Native, channel: EngineChannel, welcome: Welcome, deserted: () => void) {
    this.#native = native;
    this.#channel = channel;
    this.#welcome = welcome;
    this.#deserted = deserted;
  }

  rankSpawned(rank: number, pid: number): void {
    this.#spawned.set(pid, rank);
  }

  connected(connection: number, pid: number): void {
    this.#pids.set(connection, pid);
  }

  get(connection: number): Engine | undefined {
    return this.#engines.get(connection);
  }

  /** Its process is the one that the guardian started, no descendant of that. */
  isRank({ pid, jobRank }: Engine): boolean {
    return this.#spawned.get(pid) === jobRank;
  }

  /** Welcomes the engine, or refuses it with a sentence. Throws ProtocolError if the hello is malformed. */
  introduce(connection: number, request: number, payload: Uint8Array): void {
    const hello = decodeEngineHello(payload);
    const pid = this.#pids.get(connection) ?? hello.pid;
    const { jobId } = this.#welcome;
    if (hello.protocol !== BOOTSTRAP_PROTOCOL) {
      const sentence = `the engine of pid ${pid} speaks version ${hello.protocol} of the bootstrap protocol, its agent version ${BOOTSTRAP_PROTOCOL}: use the libnccl.so.2 of the ncclrun that started the job`;
      return this.#channel.refuse(connection, request, NcclResult.invalidUsage, sentence);
    }
    if (hello.jobId !== jobId) {
      const sentence = `pid ${pid} belongs to job '${hello.jobId}', the agent at this socket serves job '${jobId}'`;
      return this.#channel.refuse(connection, request, NcclResult.invalidUsage, sentence);
    }
    if (this.#engines.has(connection)) {
      const sentence = `pid ${pid} has introduced itself before`;
      return this.#channel.refuse(connection, request, NcclResult.internalError, sentence);
    }
    const ancestor = findAncestor(pid, this.#spawned);
    const jobRank = (ancestor === null ? undefined : this.#spawned.get(ancestor)) ?? hello.rank;
    const page = this.#native.telemetryCreate();
    const recorder = this.#native.recorderCreate();
    const memory = { telemetry: [page.view], recorder: recorder.view };
    const engine: Engine = { connection, pid, hello, jobRank, ...memory, gone: false, goodbye: null };
    this.#sendMemory(engine, FrameKind.welcome, request, [page.handle, recorder.handle]);
    this.#engines.set(connection, engine);
  }

  /** The engine has more communicators than its pages have slots. */
  morePages(engine: Engine, request: number): void {
    if (engine.telemetry.length >= MAX_PAGES) {
      const sentence = `pid ${engine.pid} has ${MAX_PAGES} telemetry pages, which is all that one process gets`;
      return this.#channel.refuse(engine.connection, request, NcclResult.systemError, sentence);
    }
    const { handle, view } = this.#native.telemetryCreate();
    engine.telemetry.push(view);
    this.#sendMemory(engine, FrameKind.telemetry, request, [handle]);
  }

  #sendMemory(
    { connection }: Engine,
    kind: typeof FrameKind.welcome | typeof FrameKind.telemetry,
    request: number,
    handles: readonly NativeHandle[],
  ): void {
    const payload = kind === FrameKind.welcome ? encodeWelcome(this.#welcome) : new Uint8Array(0);
    this.#channel.send(connection, kind, request, payload, handles);
    for (const handle of handles) this.#native.close(handle); // what was sent is a duplicate
  }

  /** No event of the connection follows. */
  forget(connection: number): void {
    const known = this.#pids.delete(connection);
    const engine = this.#engines.get(connection);
    if (engine !== undefined) {
      this.#engines.delete(connection);
      engine.gone = true;
      this.#pagesOfEnded.push(...engine.telemetry);
      this.#pagesOfEnded.splice(0, Math.max(0, this.#pagesOfEnded.length - KEPT_PAGES));
      this.#recordersOfEnded.push(engine.recorder);
      if (this.#recordersOfEnded.length > KEPT_RECORDERS) this.#recordersOfEnded.shift();
    }
    if (known && this.#pids.size === 0) this.#deserted();
  }

  /** What every engine of this host does, or did last. */
  telemetry(): TelemetryPage[] {
    const views = [...this.#pagesOfEnded, ...[...this.#engines.values()].flatMap(({ telemetry }) => telemetry)];
    return views.map(decodeTelemetry).filter((page) => page !== null);
  }

  /** What every engine of this host has recorded, or had. */
  recorders(): Uint8Array[] {
    return [...this.#recordersOfEnded, ...Array.from(this.#engines.values(), ({ recorder }) => recorder)];
  }

  close(): void {
    for (const connection of this.#engines.keys()) this.forget(connection);
  }
}
