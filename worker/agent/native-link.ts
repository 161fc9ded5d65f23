/** The link of a remote agent: its standard streams, served by the addon. (Node's own streams cost each start several milliseconds to load.) */
import type { Link, LinkHandler } from '../../control/link/link.ts';
import { encodeFrame, isFrameKind } from '../../control/messages/codec.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { LocalServer, LocalServerEvent, Native } from '../engine/native.ts';

/** The streams' connection in the server that serves them alone. */
const CONNECTION = 1;

export class NativeLink implements Link {
  readonly #native: Native;
  readonly #server: LocalServer;
  readonly #onFlushed: () => void;
  #handler: LinkHandler | null = null;
  #unsent: Uint8Array[] = [];
  #over = false;
  #closing = false;

  /** `onFlushed`: after close(), everything has left (or nobody takes it any more). Throws NativeError for descriptors that are closed. */
  constructor(native: Native, input: number, output: number, onFlushed: () => void) {
    this.#native = native;
    this.#onFlushed = onFlushed;
    this.#server = native.streamsServe(input, output, (event) => this.#event(event));
  }

  /** Events wait for the end of this turn of the event loop: nothing is missed. */
  open(handler: LinkHandler): void {
    this.#handler = handler;
  }

  send(frame: Frame): void {
    if (this.#unsent.length === 0) process.nextTick(() => this.flush());
    this.#unsent.push(encodeFrame(frame));
  }

  /** All frames of one turn of the event loop leave in one write: what they cost the remote shell is paid once. */
  flush(): void {
    const frames = this.#unsent;
    this.#unsent = [];
    const [first] = frames;
    if (first === undefined || this.#over) return;
    const bytes = frames.length === 1 ? first : Buffer.concat(frames);
    this.#native.localServerWrite(this.#server, CONNECTION, bytes);
  }

  close(): void {
    this.flush();
    if (this.#over) return this.#onFlushed();
    this.#closing = true;
    return this.#native.localServerDisconnect(this.#server, CONNECTION);
  }

  #event(event: LocalServerEvent): void {
    switch (event.type) {
      case 'frame': {
        const { kind } = event;
        if (isFrameKind(kind)) this.#handler?.frame({ ...event, kind });
        else this.#closed(`the frame's kind, ${kind}, is unknown`);
        return;
      }
      case 'closed':
        return this.#closed(event.reason === '' ? null : event.reason);
      case 'died':
        this.#over = true;
        return this.#closing ? this.#onFlushed() : undefined;
      case 'connected':
        return undefined;
      default:
        return event satisfies never;
    }
  }

  #closed(problem: string | null): void {
    const handler = this.#handler;
    this.#handler = null;
    handler?.closed(problem);
  }
}
