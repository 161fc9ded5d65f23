/**
 * Agents of other hosts that the launcher reaches through this one: a remote shell for each, whose frames travel inside of frames of our own link.
 * They end with the launcher's word, and with that link. The lease with them is kept here.
 */
import { GatheredFrames } from '../../control/link/gathered-frames.ts';
import { HEARTBEAT, Lease, silenceFrame } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { describeStall, StartWatch } from '../../control/link/start-watch.ts';
import { parseChildOrder } from '../../control/link/validate.ts';
import {
  ChildMessage,
  decodePassed,
  type ChildEnd,
  type ChildOrder,
  type ChildProblem,
} from '../../control/messages/child-agent.ts';
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

/** A running remote shell: what ChildAgents needs of a NativeLink. */
export interface ChildLink extends Link {
  readonly died: Promise<ChildExit>;
  /** The number of its process while a signal keeps it stopped. */
  readonly stoppedChild?: number | null;
  kill(): void;
  letGo(): void;
  release(): void;
}

/** @throws an Error with the reason if the remote shell cannot start */
export type StartChild = (words: readonly string[]) => ChildLink;

interface ChildAgent {
  readonly link: ChildLink;
  /** Watches the start until the agent's first frame. */
  readonly watch: StartWatch;
  /** Reason of a failed start; null if the start did not fail. */
  stall: string | null;
  /** The child agent's lease from its first frame on. */
  lease: Lease | null;
}

export class ChildAgents {
  readonly #up: Link;
  readonly #terms: LeaseTerms;
  readonly #start: StartChild;
  readonly #gathered: GatheredFrames;
  readonly #children = new Map<number, ChildAgent>();
  #none = Promise.resolve();
  #lastGone: (() => void) | null = null;

  /** `up` is the link to the launcher. */
  constructor(up: Link, terms: LeaseTerms, start: StartChild = startTool) {
    this.#up = up;
    this.#terms = terms;
    this.#start = start;
    this.#gathered = new GatheredFrames((frame) => up.send(frame));
  }

  /** Resolves when there are no child agents. */
  get none(): Promise<void> {
    return this.#none;
  }

  /** Processes a frame of kind `childAgent`. @throws ProtocolError if it is invalid */
  receive({ flags, subject: number, payload }: Frame): void {
    const link = this.#children.get(number)?.link;
    switch (flags) {
      case ChildMessage.passed:
        for (const { children, frame } of decodePassed(payload)) for (const one of children) this.#pass(one, frame);
        return undefined;
      case ChildMessage.begin:
        return this.#begin(number, parseChildOrder(payload));
      case ChildMessage.close:
        return link?.close();
      case ChildMessage.letGo:
        return link?.letGo();
      case ChildMessage.kill:
        return link?.kill();
      default:
        throw new ProtocolError(`a frame of a child agent with flags ${flags}`);
    }
  }

  /** The launcher lives. A host where no agent has spoken yet would take the news for something else. */
  beat(): void {
    for (const { link, lease } of this.#children.values()) if (lease !== null) link.send(HEARTBEAT);
  }

  /** The launcher is gone: those at the other ends see it by the end of their streams. */
  end(): void {
    for (const { link } of this.#children.values()) link.letGo();
  }

  #pass(number: number, frame: Frame): void {
    const child = this.#children.get(number);
    if (frame.kind === FrameKind.suspend) child?.lease?.follow(frame);
    child?.link.send(frame);
  }

  #begin(number: number, { words }: ChildOrder): void {
    if (this.#children.has(number)) throw new ProtocolError(`child agent ${number} was begun twice`);
    let link: ChildLink;
    try {
      link = this.#start(words);
    } catch (error) {
      return this.#sendMessage(number, ChildMessage.gone, { status: null, stderr: messageOf(error) });
    }
    if (this.#children.size === 0) this.#none = new Promise((resolve) => (this.#lastGone = resolve));
    const child: ChildAgent = { link, watch: this.#watchStart(() => child), stall: null, lease: null };
    this.#children.set(number, child);
    link.open({
      frame: (frame) => this.#receiveFrom(number, child, frame),
      closed: (problem) => {
        child.watch.stop();
        child.lease?.stop();
        this.#sendMessage(number, ChildMessage.closed, { problem });
      },
    });
    void this.#untilGone(number, child);
  }

  #receiveFrom(number: number, child: ChildAgent, frame: Frame): void {
    if (frame.kind === FrameKind.staging) child.watch.received(true);
    else child.watch.stop();
    if (frame.kind !== FrameKind.staging)
      child.lease ??= new Lease({ ...this.#terms, onSilent: (silentMs) => this.#silent(number, child, silentMs) });
    child.lease?.renew();
    if (frame.kind !== FrameKind.heartbeat) this.#gathered.add(number, frame);
  }

  /** Watches here, because the launcher would learn no sooner and could not distinguish whose silence it is. */
  #watchStart(child: () => ChildAgent): StartWatch {
    return new StartWatch({
      ...this.#terms,
      connectMs: CONNECT_MS,
      loginMs: null,
      advanceMs: Infinity, // the launcher's decision
      stoppedProcess: () => child().link.stoppedChild ?? null,
      onStall(stall) {
        child().stall = describeStall(stall);
        child().link.kill();
      },
    });
  }

  /** Reports the expired lease and kills the remote shell, with which the agents behind it are lost, too. */
  #silent(number: number, { link }: ChildAgent, silentMs: number): void {
    this.#gathered.add(number, silenceFrame(silentMs));
    link.kill();
  }

  async #untilGone(number: number, child: ChildAgent): Promise<void> {
    const { waitStatus, stderr } = await child.link.died;
    child.watch.stop();
    child.lease?.stop();
    child.link.release();
    this.#children.delete(number);
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    this.#sendMessage(number, ChildMessage.gone, { status, stderr: child.stall ?? stderr });
    if (this.#children.size === 0) this.#lastGone?.();
  }

  #sendMessage(subject: number, flags: number, what: ChildProblem | ChildEnd): void {
    this.#gathered.flush();
    this.#up.send(makeFrame(FrameKind.childAgent, { subject, flags, payload: encodeJson(what) }));
  }
}

function startTool(words: readonly string[]): ChildLink {
  const native = loadNative();
  return new NativeLink(native, (onEvent) => native.toolStart(words, [], onEvent));
}
