/** A link whose bytes the addon moves, on a thread of its own. (Node's own streams and processes cost each start several milliseconds to load.) */
import { monotonicMs } from '../../control/clock.ts';
import type { Link, LinkHandler } from '../../control/link/link.ts';
import { encodeFrame, isFrameKind } from '../../control/messages/codec.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { LocalServer, LocalServerEvent, Native } from './native.ts';

/** The other side's connection in the server that serves it alone. */
const CONNECTION = 1;

/** Unsent bytes that wait for nothing more. */
const FULL_BYTES = 64 * 1024;

/** Exit of the process at the other end; without a known process, the end of the stream. */
export interface ChildExit {
  /** Status of waitpid for our own child, else null. */
  readonly waitStatus: number | null;
  /** Last part of a tool's stderr. */
  readonly stderr: string;
}

/** Time that a detached child may take to exit. */
const EXIT_GRACE_MS = 2000;

export class NativeLink implements Link {
  readonly #native: Native;
  readonly #server: LocalServer;
  readonly #died = Promise.withResolvers<ChildExit>();
  #handler: LinkHandler | null = null;
  readonly #gatherMs: number;
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #flushedAt = -Infinity;
  #over = false;

  /**
   * Calls `serve` to start the server. Throws its error: NativeError for a program that cannot start.
   * `gatherMs`: frames sent within this time of a write leave together in the next one. Each write over ssh wakes two processes on either
   * side: reports of sixteen ranks that start and exit one by one would cost more than the ranks themselves.
   */
  constructor(native: Native, serve: (onEvent: (event: LocalServerEvent) => void) => LocalServer, gatherMs = 0) {
    this.#native = native;
    this.#gatherMs = gatherMs;
    this.#server = serve((event) => this.#event(event));
  }

  /** After the last frame; after a close() too, once all that was sent has left. */
  get died(): Promise<ChildExit> {
    return this.#died.promise;
  }

  /** Events wait for the end of this event-loop tick: nothing is missed. */
  open(handler: LinkHandler): void {
    this.#handler = handler;
  }

  /** All frames of one event-loop tick leave in one write, at least. */
  send(frame: Frame): void {
    const bytes = encodeFrame(frame);
    const first = this.#unsent.push(bytes) === 1;
    this.#unsentBytes += bytes.length;
    if (this.#unsentBytes >= FULL_BYTES) return this.flush();
    if (!first) return;
    const wait = this.#flushedAt + this.#gatherMs - monotonicMs();
    if (wait <= 0) process.nextTick(() => this.flush());
    else setTimeout(() => this.flush(), wait);
  }

  flush(): void {
    const frames = this.#unsent;
    this.#unsent = [];
    this.#unsentBytes = 0;
    const [first] = frames;
    if (first === undefined || this.#over) return;
    const bytes = frames.length === 1 ? first : Buffer.concat(frames);
    if (this.#gatherMs > 0) this.#flushedAt = monotonicMs();
    this.#native.localServerWrite(this.#server, CONNECTION, bytes);
  }

  close(): void {
    this.flush();
    if (!this.#over) this.#native.localServerDisconnect(this.#server, CONNECTION);
  }

  /** SIGKILL to the child at the other end, with what it started in its process group. */
  kill(): void {
    if (!this.#over) this.#native.childKill(this.#server, true);
  }

  /** The number of the child's process while a signal keeps it stopped; else null. */
  get stoppedChild(): number | null {
    const pid = this.#over ? 0 : this.#native.childStopped(this.#server);
    return pid === 0 ? null : pid;
  }

  /** SIGKILL to the child alone: what it started may end by itself. */
  killAlone(): void {
    if (!this.#over) this.#native.childKill(this.#server, false);
  }

  /**
   * The child ends because its streams have; it is killed, alone, where that takes too long. Killed at once, an ssh with bytes that it has not
   * read yet resets its connection, and a host that the reset does not reach keeps the session.
   */
  letGo(): void {
    this.close();
    const timer = setTimeout(() => this.killAlone(), EXIT_GRACE_MS);
    void this.died.then(() => clearTimeout(timer));
  }

  /** The last call, after the death. Until then it keeps the event loop, and so this process, running. */
  release(): void {
    this.#native.localServerClose(this.#server);
  }

  #event(event: LocalServerEvent): void {
    switch (event.type) {
      case 'frame': {
        const { kind } = event;
        if (isFrameKind(kind)) this.#receive({ ...event, kind });
        else this.#cut(`the frame's kind, ${kind}, is unknown`);
        return;
      }
      case 'closed':
        return this.#closed(event.reason === '' ? null : event.reason);
      case 'died':
        this.#over = true;
        return this.#died.resolve(event);
      case 'connected':
      case 'refused':
      case 'caughtUp':
        return;
      default:
        event satisfies never;
    }
  }

  #receive(frame: Frame): void {
    try {
      this.#handler?.frame(frame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cut(error.message);
    }
  }

  /** Disconnects, and ignores further frames of the other side. */
  #cut(problem: string): void {
    if (!this.#over) this.#native.localServerDisconnect(this.#server, CONNECTION);
    this.#closed(problem);
  }

  #closed(problem: string | null): void {
    const handler = this.#handler;
    this.#handler = null;
    handler?.closed(problem);
  }
}
