/** An agent at work that passes frames on to agents of other hosts, and these as remote processes. */
import type { Link, LinkHandler } from '../../../control/link/link.ts';
import { parseBranchEnd, parseBranchProblem } from '../../../control/link/validate.ts';
import { BranchWord } from '../../../control/messages/branch.ts';
import { decodeFrame, encodeFrame, encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { RemoteExit, RemoteProcess } from '../shell.ts';

export class Trunk {
  readonly #host: string;
  readonly #link: Link;
  readonly #branches = new Map<number, Branch>();
  #next = 0;

  /** `link`: to the agent of `host`. */
  constructor(host: string, link: Link) {
    this.#host = host;
    this.#link = link;
  }

  get host(): string {
    return this.#host;
  }

  /** Has that host run a remote shell with an agent at its other end. */
  grow(words: readonly string[]): RemoteProcess {
    const subject = this.#next++;
    const say = (flags: number, payload: Uint8Array = new Uint8Array(0)): void =>
      this.#link.send(makeFrame(FrameKind.branch, { subject, flags, payload }));
    const branch = new Branch(say, () => this.#link.flush());
    this.#branches.set(subject, branch);
    void branch.exit.then(() => this.#branches.delete(subject));
    say(BranchWord.begin, encodeJson({ words }));
    const letGo = (lost: boolean): void => say(lost ? BranchWord.kill : BranchWord.letGo);
    return { link: branch, exit: branch.exit, kill: () => say(BranchWord.kill), letGo };
  }

  /** @throws ProtocolError for a frame of a branch that makes no sense */
  receive(frame: Frame): void {
    this.#branches.get(frame.subject)?.receive(frame);
  }

  /** Nothing comes from it any more. */
  end(): void {
    for (const branch of this.#branches.values()) branch.lose(`it was reached by way of ${this.#host}, which is gone`);
  }
}

class Branch implements Link {
  readonly #say: (word: number, payload?: Uint8Array) => void;
  readonly flush: () => void;
  readonly #exit = Promise.withResolvers<RemoteExit>();
  #handler: LinkHandler | null = null;
  /** What came before anybody listened. */
  #early: ((handler: LinkHandler) => void)[] = [];

  constructor(say: (word: number, payload?: Uint8Array) => void, flush: () => void) {
    this.#say = say;
    this.flush = flush;
  }

  get exit(): Promise<RemoteExit> {
    return this.#exit.promise;
  }

  open(handler: LinkHandler): void {
    this.#handler = handler;
    for (const tell of this.#early) tell(handler);
    this.#early = [];
  }

  send(frame: Frame): void {
    this.#say(BranchWord.frame, encodeFrame(frame));
  }

  close(): void {
    this.#say(BranchWord.close);
  }

  receive({ flags, payload }: Frame): void {
    if (flags === BranchWord.frame) return this.#hear(decodeFrame(payload));
    if (flags === BranchWord.closed) return this.#closed(parseBranchProblem(payload).problem);
    if (flags !== BranchWord.gone) throw new ProtocolError(`a frame of a branch with flags ${flags}`);
    this.#closed(null);
    return this.#exit.resolve(parseBranchEnd(payload));
  }

  lose(problem: string): void {
    this.#closed(problem);
    this.#exit.resolve({ status: null, remarks: problem });
  }

  #hear(frame: Frame): void {
    if (this.#handler === null) this.#early.push((handler) => handler.frame(frame));
    else this.#handler.frame(frame);
  }

  #closed(problem: string | null): void {
    if (this.#handler === null) this.#early.push((handler) => handler.closed(problem));
    else this.#handler.closed(problem);
    this.#handler = { frame: () => undefined, closed: () => undefined };
  }
}
