/** Collects the child agents' frames of one event-loop tick into one frame of kind `childAgent` on a link. */
import { ChildMessage, encodePassed, passedBytes } from '../messages/child-agent.ts';
import { makeFrame } from '../messages/codec.ts';
import { FrameKind, type Frame } from '../messages/frame.ts';

/** Bytes at which the frames leave before the end of the tick. A receiver that keeps one frame keeps the whole buffer alive. */
const FULL_BYTES = 64 * 1024;

export class GatheredFrames {
  readonly #send: (frame: Frame) => void;
  #waiting: { readonly children: number[]; readonly frame: Frame }[] = [];
  #bytes = 0;

  /** `send` writes to the link. */
  constructor(send: (frame: Frame) => void) {
    this.#send = send;
  }

  /** Adds a frame; the same frame added for several child agents in a row travels once. */
  add(child: number, frame: Frame): void {
    const last = this.#waiting.at(-1);
    if (last?.frame === frame && !last.children.includes(child)) {
      last.children.push(child);
      return;
    }
    const one = { children: [child], frame };
    const bytes = passedBytes(one);
    if (this.#bytes + bytes > FULL_BYTES) this.flush();
    this.#bytes += bytes;
    if (this.#waiting.push(one) === 1) setImmediate(() => this.flush());
  }

  /** Sends the collected frames, so that later frames of the link follow them. */
  flush(): void {
    const frames = this.#waiting;
    if (frames.length === 0) return;
    this.#waiting = [];
    this.#bytes = 0;
    this.#send(makeFrame(FrameKind.childAgent, { flags: ChildMessage.passed, payload: encodePassed(frames) }));
  }
}
