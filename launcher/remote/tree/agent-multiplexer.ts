/** An agent at work that passes frames on to agents of other hosts, and these as remote processes. */
import { GatheredFrames } from '../../../control/link/gathered-frames.ts';
import type { Link, LinkHandler } from '../../../control/link/link.ts';
import { parseBranchEnd, parseBranchProblem } from '../../../control/link/validate.ts';
import { BranchMessage, decodePassed } from '../../../control/messages/branch.ts';
import { encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { RemoteExit, RemoteProcess } from '../shell/shell.ts';

export class AgentMultiplexer {
  readonly #host: string;
  readonly #link: Link;
  readonly #gathered: GatheredFrames;
  readonly #branches = new Map<number, Branch>();
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
      this.#link.send(makeFrame(FrameKind.branch, { subject, flags, payload }));
    };
    const branch = new Branch({
      send: (frame) => this.#gathered.add(subject, frame),
      flush: () => {
        this.settle();
        this.#link.flush();
      },
      close: () => send(BranchMessage.close),
    });
    this.#branches.set(subject, branch);
    void branch.exit.then(() => this.#branches.delete(subject));
    send(BranchMessage.begin, encodeJson({ words }));
    const letGo = (lost: boolean): void => send(lost ? BranchMessage.kill : BranchMessage.letGo);
    return { link: branch, exit: branch.exit, kill: () => send(BranchMessage.kill), letGo, isWatched: true };
  }

  /** @throws ProtocolError for a frame of a branch that makes no sense */
  receive(frame: Frame): void {
    if (frame.flags !== BranchMessage.passed) return this.#branches.get(frame.subject)?.receive(frame);
    for (const { branches, frame: one } of decodePassed(frame.payload))
      for (const branch of branches) this.#branches.get(branch)?.deliver(one);
    return undefined;
  }

  /** Hands to the link what branches were given so far. */
  settle(): void {
    this.#gathered.flush();
  }

  /** Nothing comes from it any more. */
  end(): void {
    for (const branch of this.#branches.values()) branch.lose(`it was reached through ${this.#host}, which is gone`);
  }
}

class Branch implements Link {
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
    if (flags === BranchMessage.closed) return this.#closed(parseBranchProblem(payload).problem);
    if (flags !== BranchMessage.gone) throw new ProtocolError(`a frame of a branch with flags ${flags}`);
    this.#closed(null);
    return this.#exit.resolve(parseBranchEnd(payload));
  }

  lose(problem: string): void {
    this.#closed(problem);
    this.#exit.resolve({ status: null, remarks: problem });
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
