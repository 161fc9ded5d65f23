/** A running agent that forwards frames to its child agents, and these as remote processes. */
import { GatheredFrames } from '../../../control/link/gathered-frames.ts';
import type { Link, LinkHandler } from '../../../control/link/link.ts';
import { parseChildEnd, parseChildProblem } from '../../../control/link/validate.ts';
import { ChildMessage, decodePassed } from '../../../control/messages/child-agent.ts';
import { encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { RemoteExit, RemoteProcess } from '../shell/shell.ts';

export class AgentMultiplexer {
  readonly #host: string;
  readonly #link: Link;
  readonly #gathered: GatheredFrames;
  readonly #children = new Map<number, ChildAgent>();
  #next = 0;

  /** `link`: to the agent of `host`. */
  constructor(host: string, link: Link) {
    this.#host = host;
    this.#link = link;
    this.#gathered = new GatheredFrames((frame) => link.send(frame));
  }

  get host(): string {
    return this.#host;
  }

  /** Has that host run a remote shell with an agent at its other end. */
  grow(words: readonly string[]): RemoteProcess {
    const subject = this.#next++;
    const send = (flags: number, payload: Uint8Array = new Uint8Array(0)): void => {
      this.settle();
      this.#link.send(makeFrame(FrameKind.childAgent, { subject, flags, payload }));
    };
    const child = new ChildAgent({
      send: (frame) => this.#gathered.add(subject, frame),
      flush: () => {
        this.settle();
        this.#link.flush();
      },
      close: () => send(ChildMessage.close),
    });
    this.#children.set(subject, child);
    void child.exit.then(() => this.#children.delete(subject));
    send(ChildMessage.begin, encodeJson({ words }));
    const letGo = (lost: boolean): void => send(lost ? ChildMessage.kill : ChildMessage.letGo);
    return { link: child, exit: child.exit, kill: () => send(ChildMessage.kill), letGo, isWatched: true };
  }

  /** @throws ProtocolError for a frame of a child agent that makes no sense */
  receive(frame: Frame): void {
    if (frame.flags !== ChildMessage.passed) return this.#children.get(frame.subject)?.receive(frame);
    for (const { children, frame: one } of decodePassed(frame.payload))
      for (const child of children) this.#children.get(child)?.deliver(one);
    return undefined;
  }

  /** Sends the frames that child agents were given so far. */
  settle(): void {
    this.#gathered.flush();
  }

  /** Nothing comes from it any more. */
  end(): void {
    for (const child of this.#children.values()) child.lose(`it was reached through ${this.#host}, which is gone`);
  }
}

class ChildAgent implements Link {
  readonly #far: Pick<Link, 'send' | 'flush' | 'close'>;
  readonly #exit = Promise.withResolvers<RemoteExit>();
  #handler: LinkHandler | null = null;
  /** What came before anybody listened. */
  #early: ((handler: LinkHandler) => void)[] = [];

  constructor(far: Pick<Link, 'send' | 'flush' | 'close'>) {
    this.#far = far;
  }

  get exit(): Promise<RemoteExit> {
    return this.#exit.promise;
  }

  open(handler: LinkHandler): void {
    this.#handler = handler;
    for (const deliver of this.#early) deliver(handler);
    this.#early = [];
  }

  send(frame: Frame): void {
    this.#far.send(frame);
  }

  flush(): void {
    this.#far.flush();
  }

  close(): void {
    this.#far.close();
  }

  receive({ flags, payload }: Frame): void {
    if (flags === ChildMessage.closed) return this.#closed(parseChildProblem(payload).problem);
    if (flags !== ChildMessage.gone) throw new ProtocolError(`a frame of a child agent with flags ${flags}`);
    this.#closed(null);
    return this.#exit.resolve(parseChildEnd(payload));
  }

  lose(problem: string): void {
    this.#closed(problem);
    this.#exit.resolve({ status: null, stderr: problem });
  }

  deliver(frame: Frame): void {
    if (this.#handler === null) this.#early.push((handler) => handler.frame(frame));
    else this.#handler.frame(frame);
  }

  #closed(problem: string | null): void {
    if (this.#handler === null) this.#early.push((handler) => handler.closed(problem));
    else this.#handler.closed(problem);
    this.#handler = { frame: () => undefined, closed: () => undefined };
  }
}
