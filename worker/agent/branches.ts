/**
 * Agents of other hosts that the launcher reaches by way of this one: a remote shell for each, whose frames travel inside of frames of our own link.
 * They end with the launcher's word, and with that link.
 */
import type { Link } from '../../control/link/link.ts';
import { parseBranchOrder } from '../../control/link/validate.ts';
import { BranchWord, type BranchEnd, type BranchOrder, type BranchProblem } from '../../control/messages/branch.ts';
import { decodeFrame, encodeFrame, encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { loadNative } from '../engine/load.ts';
import { NativeLink } from '../engine/native-link.ts';
import { messageOf } from '../../control/message-of.ts';

export class Branches {
  readonly #up: Link;
  readonly #links = new Map<number, NativeLink>();
  #none = Promise.resolve();
  #lastGone: (() => void) | null = null;

  /** `up`: the link to the launcher. */
  constructor(up: Link) {
    this.#up = up;
  }

  /** Resolves when there is none, at once or later. */
  get none(): Promise<void> {
    return this.#none;
  }

  /** A frame of kind `branch`. @throws ProtocolError for one that makes no sense */
  receive({ flags, subject: branch, payload }: Frame): void {
    if (flags === BranchWord.begin) return this.#begin(branch, parseBranchOrder(payload));
    const link = this.#links.get(branch);
    switch (flags) {
      case BranchWord.frame:
        return link?.send(decodeFrame(payload));
      case BranchWord.close:
        return link?.close();
      case BranchWord.letGo:
        return link?.letGo();
      case BranchWord.kill:
        return link?.kill();
      default:
        throw new ProtocolError(`a frame of a branch with flags ${flags}`);
    }
  }

  /** The launcher is gone: those at the other ends see it by the end of their streams. */
  end(): void {
    for (const link of this.#links.values()) link.letGo();
  }

  #begin(branch: number, { words }: BranchOrder): void {
    if (this.#links.has(branch)) throw new ProtocolError(`branch ${branch} was begun twice`);
    let link: NativeLink;
    try {
      const native = loadNative();
      link = new NativeLink(native, (onEvent) => native.toolStart(words, [], onEvent));
    } catch (error) {
      const remarks = messageOf(error);
      return this.#say(branch, BranchWord.gone, { status: null, remarks });
    }
    if (this.#links.size === 0) this.#none = new Promise((resolve) => (this.#lastGone = resolve));
    this.#links.set(branch, link);
    link.open({
      frame: (frame) => this.#up.send(branchFrame(branch, BranchWord.frame, encodeFrame(frame))),
      closed: (problem) => this.#say(branch, BranchWord.closed, { problem }),
    });
    void this.#untilGone(branch, link);
  }

  async #untilGone(branch: number, link: NativeLink): Promise<void> {
    const { waitStatus, remarks } = await link.died;
    link.release();
    this.#links.delete(branch);
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    this.#say(branch, BranchWord.gone, { status, remarks });
    if (this.#links.size === 0) this.#lastGone?.();
  }

  #say(branch: number, word: number, what: BranchProblem | BranchEnd): void {
    this.#up.send(branchFrame(branch, word, encodeJson(what)));
  }
}

function branchFrame(subject: number, flags: number, payload: Uint8Array): Frame {
  return makeFrame(FrameKind.branch, { subject, flags, payload });
}
