/** Frames of branches on their way over one link: all of one turn of the event loop leave in one frame of kind `branch`. */
import { BranchWord, encodePassed, passedBytes } from '../messages/branch.ts';
import { makeFrame } from '../messages/codec.ts';
import { FrameKind, type Frame } from '../messages/frame.ts';

/** More does not wait for the end of the turn. Whoever keeps a few bytes of what came together keeps all of it. */
const FULL_BYTES = 64 * 1024;

export class GatheredFrames {
  readonly #send: (frame: Frame) => void;
  #waiting: { readonly branches: number[]; readonly frame: Frame }[] = [];
  #bytes = 0;

  /** `send`: over the link. */
  constructor(send: (frame: Frame) => void) {
    this.#send = send;
  }

  /** One frame for many branches, given for each in turn, travels once. */
  add(branch: number, frame: Frame): void {
    const last = this.#waiting.at(-1);
    if (last?.frame === frame && !last.branches.includes(branch)) {
      last.branches.push(branch);
      return;
    }
    const one = { branches: [branch], frame };
    const bytes = passedBytes(one);
    if (this.#bytes + bytes > FULL_BYTES) this.flush();
    this.#bytes += bytes;
    if (this.#waiting.push(one) === 1) setImmediate(() => this.flush());
  }

  /** What is sent otherwise from now on comes after it. */
  flush(): void {
    const frames = this.#waiting;
    if (frames.length === 0) return;
    this.#waiting = [];
    this.#bytes = 0;
    this.#send(makeFrame(FrameKind.branch, { flags: BranchWord.passed, payload: encodePassed(frames) }));
  }
}
