/** A link within one process, between the launcher and the agent of its own host. It passes frames without encoding them. */
import type { Frame } from '../messages/frame.ts';
import type { Link, LinkHandler } from './link.ts';

export class MemoryLink implements Link {
  #peer: MemoryLink | null = null;
  #handler: LinkHandler | null = null;
  #inbox: Frame[] = [];
  #scheduled = false;
  #ending = false;
  #closed = false;

  static pair(): [MemoryLink, MemoryLink] {
    const one = new MemoryLink();
    const other = new MemoryLink();
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  open(handler: LinkHandler): void {
    this.#handler = handler;
    this.#schedule();
  }

  send(frame: Frame): void {
    const peer = this.#peer;
    if (peer === null || this.#ending || peer.#ending) return;
    peer.#inbox.push(frame);
    peer.#schedule();
  }

  flush(): void {}

  close(): void {
    this.#end();
    if (this.#peer !== null) this.#peer.#end();
  }

  #end(): void {
    this.#ending = true;
    this.#schedule();
  }

  /** Delivers in a microtask, so that no handler runs inside another. */
  #schedule(): void {
    if (this.#scheduled || this.#handler === null) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    const frames = this.#inbox;
    this.#inbox = [];
    for (const frame of frames) this.#handler?.frame(frame);
    if (this.#ending && !this.#closed && this.#inbox.length === 0) {
      this.#closed = true;
      this.#handler?.closed(null);
    }
  }
}
