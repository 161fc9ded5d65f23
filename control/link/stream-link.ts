/** A link over byte streams: the standard streams of a remote command. */
import type { Readable, Writable } from 'node:stream';
import { encodeFrame, encodeHeader, FrameDecoder } from '../messages/codec.ts';
import type { Frame } from '../messages/frame.ts';
import { ProtocolError } from '../messages/protocol-error.ts';
import type { Link, LinkHandler } from './link.ts';
import type { LoginText } from './login-text.ts';

/** Maximum payload that is copied behind its header; a larger one is a write of its own. */
const COPY_BYTES = 4096;
/** More than credit and rendezvous can leave unsent: beyond it the other side has stopped reading. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;

export class StreamLink implements Link {
  readonly #readable: Readable;
  readonly #writable: Writable;
  readonly #text: LoginText | null;
  #closed = false;
  #ending = false;
  #corked = false;
  #handler: LinkHandler | null = null;

  /** `text`: what may stand before the first frame. */
  constructor(readable: Readable, writable: Writable, text: LoginText | null = null) {
    this.#readable = readable;
    this.#writable = writable;
    this.#text = text;
  }

  open(handler: LinkHandler): void {
    this.#handler = handler;
    const decoder = new FrameDecoder((frame) => {
      if (!this.#closed) handler.frame(frame);
    });
    this.#readable.on('data', (chunk: Buffer) => {
      this.#guard(() => decoder.push(this.#text?.take(chunk) ?? chunk));
    });
    this.#readable.on('end', () => {
      this.#guard(() => this.#text?.end());
      this.#guard(() => decoder.end());
      this.#finish(null);
    });
    this.#readable.on('error', (error) => this.#finish(error.message));
    this.#readable.on('close', () => this.#finish(null));
    this.#writable.on('error', (error) => {
      if (this.#ending) this.#finish(null);
      else if (!this.#endFollows(error)) this.#finish(error.message);
    });
  }

  send(frame: Frame): void {
    if (this.#closed || this.#ending || !this.#writable.writable) return;
    this.#cork();
    if (frame.payload.length <= COPY_BYTES) {
      this.#writable.write(encodeFrame(frame));
    } else {
      this.#writable.write(encodeHeader(frame));
      this.#writable.write(frame.payload);
    }
    if (this.#writable.writableLength > MAX_QUEUED_BYTES) this.#finish('the other side takes no more messages');
  }

  flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#writable.uncork();
  }

  close(): void {
    if (this.#ending) return;
    this.#ending = true;
    if (!this.#closed) this.#writable.end();
  }

  /** Ends now and drops unsent frames. */
  abandon(): void {
    this.#finish(null);
  }

  /** Combines the frames of one event-loop tick into one write. */
  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#writable.cork();
    process.nextTick(() => this.flush());
  }

  #guard(read: () => void): void {
    if (this.#closed) return;
    try {
      read();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#finish(error.message);
    }
  }

  /** True if the other side has closed our output; its own last frames and the end of its output are still to come. */
  #endFollows(error: NodeJS.ErrnoException): boolean {
    const gone = error.code === 'EPIPE' || error.code === 'ECONNRESET';
    return gone && !this.#readable.readableEnded;
  }

  #finish(problem: string | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#handler?.closed(problem);
    this.#writable.destroy();
    this.#readable.destroy();
  }
}
