/** A link that may be used before its streams are there: what is sent until then waits. */
import type { Link, LinkHandler } from '../../../control/link/link.ts';
import type { Frame } from '../../../control/messages/frame.ts';

export class LateLink implements Link {
  #link: Link | null = null;
  #handler: LinkHandler | null = null;
  #waiting: Frame[] = [];
  #closing = false;

  open(handler: LinkHandler): void {
    this.#handler = handler;
    this.#link?.open(handler);
  }

  send(frame: Frame): void {
    if (this.#link !== null) this.#link.send(frame);
    else if (!this.#closing) this.#waiting.push(frame);
  }

  flush(): void {
    this.#link?.flush();
  }

  close(): void {
    this.#closing = true;
    this.#link?.close();
  }

  /** The streams are there. */
  attach(link: Link): void {
    this.#link = link;
    if (this.#handler !== null) link.open(this.#handler);
    for (const frame of this.#waiting) link.send(frame);
    this.#waiting = [];
    if (this.#closing) link.close();
  }

  /** They will never be; does nothing if they are. */
  abandon(): void {
    if (this.#link !== null) return;
    this.#closing = true;
    this.#waiting = [];
    this.#handler?.closed(null);
    this.#handler = null;
  }
}
