/** A link to whoever will call: what is sent before the call is admitted waits. */
import type { Link, LinkHandler } from '../../../control/link/link.ts';
import type { StreamLink } from '../../../control/link/stream-link.ts';
import type { Frame } from '../../../control/messages/frame.ts';

export class PlacedLink implements Link {
  readonly #mayEnd: () => Promise<void> | null;
  readonly #gone = Promise.withResolvers<void>();
  #link: StreamLink | null = null;
  #handler: LinkHandler | null = null;
  #unsent: Frame[] = [];
  #isAdmitted = false;
  #closed = false;

  /** `mayEnd` delays the report that the connection is closed; null for none. */
  constructor(mayEnd: () => Promise<void> | null) {
    this.#mayEnd = mayEnd;
  }

  /** Nobody has called, or will any more, or the call is over. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  get isCalled(): boolean {
    return this.#link !== null;
  }

  /** The call came. */
  attach(link: StreamLink): void {
    this.#link = link;
    link.open({
      frame: (frame) => this.#handler?.frame(frame),
      closed: (problem) => void this.#end(link, problem),
    });
    if (this.#closed) link.close();
  }

  /** From now on it is this call's. */
  admit(): void {
    this.#isAdmitted = true;
    for (const frame of this.#unsent) this.#link?.send(frame);
    this.#unsent = [];
  }

  /** Whoever has called is gone, and nobody need know: there will be another call. */
  forget(): void {
    this.#link = null;
  }

  open(handler: LinkHandler): void {
    this.#handler = handler;
  }

  send(frame: Frame): void {
    if (this.#isAdmitted) this.#link?.send(frame);
    else this.#unsent.push(frame);
  }

  flush(): void {
    this.#link?.flush();
  }

  close(): void {
    this.#closed = true;
    this.#link?.close();
    if (this.#link === null) this.#gone.resolve();
  }

  /** The other end may not learn of it. */
  abandon(): void {
    this.close();
    this.#link?.abandon();
  }

  async #end(link: StreamLink, problem: string | null): Promise<void> {
    await this.#mayEnd();
    if (link !== this.#link) return;
    this.#handler?.closed(problem);
    this.#gone.resolve();
  }
}
