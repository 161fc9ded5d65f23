/**
 * One attempt to start an agent on another host, from the remote shell's command to the end of its link. The options hold what stays the
 * same from attempt to attempt.
 *
 *   starting ── the shell runs ──► silent ── the agent's first frame ──► speaking ── link closed, process gone ──► ended
 *       │                            │
 *       └── it cannot be started ────┴── stall, broken link, close() ──────────────────────────────────────────► ended
 */
import { HEARTBEAT, Lease, silenceFrame } from '../../control/link/lease.ts';
import { StartWatch, type StartStall } from '../../control/link/start-watch.ts';
import { FRAME_HEADER_BYTES, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import { messageOf } from '../../control/message-of.ts';
import { installationRoot } from '../local/host.ts';
import type { HostSlots } from '../model/types.ts';
import type { ConnectionHandler } from './shell/connection.ts';
import { ConnectionError } from './shell/connection-error.ts';
import { AGENT_START } from './shell/shell.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell/shell.ts';
import type { InstallationIdentity } from './staging/identity.ts';
import { StagingMessage } from './staging/protocol.ts';
import { installedCommand, remoteCommand } from './staging/remote-script.ts';
import { StagingSession } from './staging/session.ts';
import { withoutScript } from './without-script.ts';

/** From the shell's start to the host's first word, which a login may delay. */
const CONNECT_MS = 60_000;
/** Between two steps of a start, such as a piece of a copy and the next. The host itself gives up sooner, if it can. */
const ADVANCE_MS = 90_000;

export interface StartAttemptOptions {
  readonly shell: RemoteShell;
  /** What a host gets that lacks ncclrun; null: nothing. */
  readonly identity: InstallationIdentity | null;
  readonly host: HostSlots;
  readonly order: Frame;
  readonly terms: Pick<AgentOrder, 'leaseMs' | 'heartbeatMs'>;
  readonly handler: Omit<ConnectionHandler, 'closed'>;
}

/** How one attempt ended. */
export interface AttemptEnd {
  /** The agent did. */
  readonly spoke: boolean;
  /** Why we ended it; null: we did not. */
  readonly stall: StartStall | null;
  /** The host's shell has run our command. */
  readonly began: boolean;
  /** The host's watchdog ended the agent. */
  readonly hung: boolean;
  /** What broke the link; null for a clean end. */
  readonly problem: string | null;
  /** How far the start was, for people. */
  readonly step: string;
  readonly exit: RemoteExit;
  readonly staging: StagingSession | null;
}

export class StartAttempt {
  readonly #options: StartAttemptOptions;
  readonly #command: string;
  readonly #onSpoke: () => void;
  #remote: RemoteProcess | null = null;
  #watch: StartWatch | null = null;
  #staging: StagingSession | null = null;
  /** From the agent's first frame to the end of its link; null where another agent keeps it. */
  #lease: Lease | null = null;
  /** Until an agent speaks, a host that lacks ncclrun would take what came after the order for a part of ncclrun. */
  #held: Frame[] | null = null;
  #isClosing = false;
  #step = '';
  #hasSpoken = false;
  #hasBegun = false;
  #isHung = false;
  #stall: StartStall | null = null;
  #problem: string | null = null;

  /** `number` counts from 1. `anew`: the copy in the host's cache does not work. `onSpoke` is called at the agent's first frame. */
  constructor(options: StartAttemptOptions, number: number, anew: boolean, onSpoke: () => void) {
    this.#options = options;
    this.#command = commandFor(options, anew);
    this.#onSpoke = onSpoke;
    this.#report(number === 1 ? 'connecting' : `connecting, attempt ${number}`);
  }

  /** Resolves when no process is left on our side. Called once. */
  async run(): Promise<AttemptEnd> {
    const { shell, host, order, handler } = this.#options;
    let remote: RemoteProcess;
    try {
      remote = await shell.start(host, this.#command, {
        remoteShell: (message) => handler.remoteShell(message),
        step: (step) => {
          this.#report(step);
          if (step === AGENT_START) this.#watch?.login();
        },
        staging: (bytes) => handler.staging(bytes),
      });
    } catch (error) {
      return this.#end(failedExit(error));
    }
    this.#remote = remote;
    this.#watch = this.#watchStart(remote);
    this.#staging = this.#stagingOver(remote);
    this.#held = this.#staging === null ? null : [];
    remote.link.open({
      frame: (frame) => this.#receive(remote, frame),
      closed: (problem) => this.#linkClosed(remote, problem),
    });
    if (this.#isClosing) remote.link.close();
    else remote.link.send(order);
    const exit = await remote.exit;
    this.#watch.stop();
    this.#lease?.stop();
    return this.#end({ ...exit, stderr: withoutScript(exit.stderr, this.#command) });
  }

  send(frame: Frame): void {
    if (frame.kind === FrameKind.suspend) this.#lease?.follow(frame);
    if (this.#held === null) this.#remote?.link.send(frame);
    else this.#held.push(frame);
  }

  /** An agent whose ranks have ended is about to leave, any other leaves because its stdin ends. */
  close(lost: boolean): void {
    this.#isClosing = true;
    this.#remote?.link.close();
    if (this.#hasSpoken) this.#remote?.letGo(lost);
    else this.#remote?.kill();
  }

  #receive(remote: RemoteProcess, frame: Frame): void {
    if (!this.#hasSpoken) {
      if (this.#isOfStart(frame)) return;
      this.#speaks(remote);
    }
    this.#lease?.renew();
    if (frame !== HEARTBEAT) this.#options.handler.frame(frame); // that very one stands for a frame of an agent behind it
  }

  /** True: the frame comes from the host's script or watchdog, not from an agent. */
  #isOfStart(frame: Frame): boolean {
    if (frame.kind === FrameKind.staging) {
      this.#watch?.received(frame.flags !== StagingMessage.alive);
      this.#hasBegun = true;
      this.#isHung ||= frame.flags === StagingMessage.hung;
      if (isSignOfLife(frame)) return true;
    }
    if (this.#staging?.takes(frame) !== true) return false;
    if (isReady(frame)) this.#report(AGENT_START);
    return true;
  }

  #speaks(remote: RemoteProcess): void {
    this.#hasSpoken = true;
    this.#watch?.stop();
    this.#onSpoke();
    const held = this.#held ?? [];
    this.#held = null;
    for (const frame of held) this.send(frame);
    if (remote.isWatched !== true) this.#lease = this.#keepLease(remote);
  }

  #linkClosed(remote: RemoteProcess, problem: string | null): void {
    this.#problem = problem;
    this.#lease?.stop();
    if (problem !== null) remote.kill();
  }

  /** By whatever shell it is started. A host that is reached through another one learns of that one's silence first. */
  #watchStart(remote: RemoteProcess): StartWatch {
    const { heartbeatMs, leaseMs } = this.#options.terms;
    return new StartWatch({
      heartbeatMs,
      leaseMs: remote.isWatched === true ? leaseMs + 2 * heartbeatMs : leaseMs,
      connectMs: CONNECT_MS,
      loginMs: remote.loginMs ?? null,
      advanceMs: ADVANCE_MS,
      stoppedProcess: () => remote.stoppedProcess?.() ?? null,
      onStall: (stall) => {
        this.#stall = stall;
        remote.kill();
      },
    });
  }

  #stagingOver(remote: RemoteProcess): StagingSession | null {
    const { identity, host, order, handler } = this.#options;
    if (identity === null) return null;
    return new StagingSession({
      identity,
      host: host.name,
      link: remote.link,
      order,
      onBegin: (bytes) => {
        this.#step = 'copying';
        handler.staging(bytes);
      },
      giveUp: () => remote.kill(),
    });
  }

  #keepLease({ link }: RemoteProcess): Lease {
    return new Lease({
      ...this.#options.terms,
      sendHeartbeat: () => link.send(HEARTBEAT),
      onSilent: (silentMs) => {
        this.#options.handler.frame(silenceFrame(silentMs));
        if (!this.#isClosing) this.close(true); // the job does not need its ranks, but it may have other agents behind it
      },
    });
  }

  /** Reports a step once, because both the shell and the command may report that the command runs. */
  #report(step: string): void {
    if (step !== this.#step) this.#options.handler.step(step);
    this.#step = step;
  }

  #end(exit: RemoteExit): AttemptEnd {
    return {
      spoke: this.#hasSpoken,
      stall: this.#stall,
      began: this.#hasBegun,
      hung: this.#isHung,
      problem: this.#problem,
      step: this.#step,
      exit,
      staging: this.#staging,
    };
  }
}

function commandFor({ identity, order }: StartAttemptOptions, anew: boolean): string {
  if (identity === null) return installedCommand(installationRoot);
  const orderBytes = FRAME_HEADER_BYTES + order.payload.length;
  return remoteCommand({ root: installationRoot, identity, orderBytes, anew });
}

/** Nothing keeps the agent from starting any more. */
function isReady({ flags }: Frame): boolean {
  return flags === StagingMessage.cached || flags === StagingMessage.staged;
}

/** Of a host that is at work, or its watchdog: nothing to answer. */
function isSignOfLife({ flags }: Frame): boolean {
  return flags === StagingMessage.alive || flags === StagingMessage.hung;
}

function failedExit(error: unknown): RemoteExit {
  const stderr = messageOf(error);
  return { status: null, stderr, ...(error instanceof ConnectionError ? { problem: error.problem } : {}) };
}
