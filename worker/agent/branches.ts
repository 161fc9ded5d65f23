/**
 * Agents of other hosts that the launcher reaches through this one: a remote shell for each, whose frames travel inside of frames of our own link.
 * They end with the launcher's word, and with that link. The lease with them is kept here.
 */
import { GatheredFrames } from '../../control/link/gathered-frames.ts';
import { HEARTBEAT, Lease, silenceFrame } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { describeStall, StartWatch } from '../../control/link/start-watch.ts';
import { parseBranchOrder } from '../../control/link/validate.ts';
import {
  BranchMessage,
  decodePassed,
  type BranchEnd,
  type BranchOrder,
  type BranchProblem,
} from '../../control/messages/branch.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { loadNative } from '../engine/load.ts';
import { NativeLink, type ChildExit } from '../engine/native-link.ts';
import { messageOf } from '../../control/message-of.ts';
import type { LeaseTerms } from './uplink.ts';

/** From a remote shell's start to its host's first word, which a login may delay. */
const CONNECT_MS = 60_000;

/** A running remote shell: what Branches needs of a NativeLink. */
export interface BranchLink extends Link {
  readonly died: Promise<ChildExit>;
  /** The number of its process while a signal keeps it stopped. */
  readonly stoppedChild?: number | null;
  kill(): void;
  letGo(): void;
  release(): void;
}

/** @throws an Error with the reason if the remote shell cannot start */
export type StartBranch = (words: readonly string[]) => BranchLink;

interface Branch {
  readonly link: BranchLink;
  /** Watches the start until the agent's first frame. */
  readonly watch: StartWatch;
  /** Reason of a failed start; null if the start did not fail. */
  stall: string | null;
  /** The child agent's lease from its first frame on. */
  lease: Lease | null;
}

export class Branches {
  readonly #up: Link;
  readonly #terms: LeaseTerms;
  readonly #start: StartBranch;
  readonly #gathered: GatheredFrames;
  readonly #branches = new Map<number, Branch>();
  #none = Promise.resolve();
  #lastGone: (() => void) | null = null;

  /** `up` is the link to the launcher. */
  constructor(up: Link, terms: LeaseTerms, start: StartBranch = startTool) {
    this.#up = up;
    this.#terms = terms;
    this.#start = start;
    this.#gathered = new GatheredFrames((frame) => up.send(frame));
  }

  /** Resolves when there are no child agents. */
  get none(): Promise<void> {
    return this.#none;
  }

  /** Processes a frame of kind `branch`. @throws ProtocolError if it is invalid */
  receive({ flags, subject: number, payload }: Frame): void {
    const link = this.#branches.get(number)?.link;
    switch (flags) {
      case BranchMessage.passed:
        for (const { branches, frame } of decodePassed(payload)) for (const one of branches) this.#pass(one, frame);
        return undefined;
      case BranchMessage.begin:
        return this.#begin(number, parseBranchOrder(payload));
      case BranchMessage.close:
        return link?.close();
      case BranchMessage.letGo:
        return link?.letGo();
      case BranchMessage.kill:
        return link?.kill();
      default:
        throw new ProtocolError(`a frame of a branch with flags ${flags}`);
    }
  }

  /** The launcher lives. A host where no agent has spoken yet would take the news for something else. */
  beat(): void {
    for (const { link, lease } of this.#branches.values()) if (lease !== null) link.send(HEARTBEAT);
  }

  /** The launcher is gone: those at the other ends see it by the end of their streams. */
  end(): void {
    for (const { link } of this.#branches.values()) link.letGo();
  }

  #pass(number: number, frame: Frame): void {
    const branch = this.#branches.get(number);
    if (frame.kind === FrameKind.suspend) branch?.lease?.follow(frame);
    branch?.link.send(frame);
  }

  #begin(number: number, { words }: BranchOrder): void {
    if (this.#branches.has(number)) throw new ProtocolError(`branch ${number} was begun twice`);
    let link: BranchLink;
    try {
      link = this.#start(words);
    } catch (error) {
      return this.#sendMessage(number, BranchMessage.gone, { status: null, remarks: messageOf(error) });
    }
    if (this.#branches.size === 0) this.#none = new Promise((resolve) => (this.#lastGone = resolve));
    const branch: Branch = { link, watch: this.#watchStart(() => branch), stall: null, lease: null };
    this.#branches.set(number, branch);
    link.open({
      frame: (frame) => this.#receiveFrom(number, branch, frame),
      closed: (problem) => {
        branch.watch.stop();
        branch.lease?.stop();
        this.#sendMessage(number, BranchMessage.closed, { problem });
      },
    });
    void this.#untilGone(number, branch);
  }

  #receiveFrom(number: number, branch: Branch, frame: Frame): void {
    if (frame.kind === FrameKind.staging) branch.watch.received(true);
    else branch.watch.stop();
    if (frame.kind !== FrameKind.staging)
      branch.lease ??= new Lease({ ...this.#terms, onSilent: (silentMs) => this.#silent(number, branch, silentMs) });
    branch.lease?.renew();
    if (frame.kind !== FrameKind.heartbeat) this.#gathered.add(number, frame);
  }

  /** Watches here, because the launcher would learn no sooner and could not distinguish whose silence it is. */
  #watchStart(branch: () => Branch): StartWatch {
    return new StartWatch({
      ...this.#terms,
      connectMs: CONNECT_MS,
      loginMs: null,
      advanceMs: Infinity, // the launcher's decision
      stoppedProcess: () => branch().link.stoppedChild ?? null,
      onStall(stall) {
        branch().stall = describeStall(stall);
        branch().link.kill();
      },
    });
  }

  /** Reports the expired lease and kills the remote shell, with which the agents behind it are lost, too. */
  #silent(number: number, { link }: Branch, silentMs: number): void {
    this.#gathered.add(number, silenceFrame(silentMs));
    link.kill();
  }

  async #untilGone(number: number, branch: Branch): Promise<void> {
    const { waitStatus, remarks } = await branch.link.died;
    branch.watch.stop();
    branch.lease?.stop();
    branch.link.release();
    this.#branches.delete(number);
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    this.#sendMessage(number, BranchMessage.gone, { status, remarks: branch.stall ?? remarks });
    if (this.#branches.size === 0) this.#lastGone?.();
  }

  #sendMessage(subject: number, flags: number, what: BranchProblem | BranchEnd): void {
    this.#gathered.flush();
    this.#up.send(makeFrame(FrameKind.branch, { subject, flags, payload: encodeJson(what) }));
  }
}

function startTool(words: readonly string[]): BranchLink {
  const native = loadNative();
  return new NativeLink(native, (onEvent) => native.toolStart(words, [], onEvent));
}
