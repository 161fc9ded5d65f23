/** An agent on another host, over the standard streams of a remote shell's command. */
import { HEARTBEAT, Lease, silenceFrame } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { StartWatch, type StartStall } from '../../control/link/start-watch.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, HEADER_BYTES } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { AgentFailure, HostUnreachableFailure } from '../model/failure.ts';
import type { HostSlots, JobRequest } from '../model/types.ts';
import type { AgentConnection, ConnectionHandler, StartAgent } from './shell/connection.ts';
import { agentPath, installationRoot } from '../local/host.ts';
import { Limiter } from './shell/limiter.ts';
import { AGENT_START } from './shell/shell.ts';
import type { BranchingShell, RemoteExit, RemoteProcess, RemoteShell } from './shell/shell.ts';
import { sayLast } from './shell/say-last.ts';
import { explainSsh } from './ssh-error.ts';
import { endedFailure, hungFailure, stallFailure } from './start-failure.ts';
import { installedIdentity, type Identity } from './staging/identity.ts';
import { HUNG_STATUS, StagingWord } from './staging/protocol.ts';
import { installedCommand, remoteCommand, UNTRUSTED } from './staging/remote-script.ts';
import { StagingTalk } from './staging/talk.ts';
import { ConnectionError } from './shell/connection-error.ts';
import { BY_SLURM, openWay } from './ways.ts';
import { withoutScript } from './without-script.ts';
import { messageOf } from '../../control/message-of.ts';

/** Connections being made at once; more only make each other slower. */
const MAX_CONNECTING = 32;
const MAX_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;
/** From the shell's start to the host's first word, which a login may delay. */
const CONNECT_MS = 60_000;
/** Between two steps of a start, such as a piece of a copy and the next. The host itself gives up sooner, if it can. */
const ADVANCE_MS = 90_000;
/** Status of a login shell that does not find the command. */
const COMMAND_NOT_FOUND = 127;
const COMMAND_NOT_EXECUTABLE = 126;
/** Of ssh itself, for whatever is wrong with the connection. */
const SSH_FAILED = 255;

const connecting = new Limiter(MAX_CONNECTING);

/** How agents are reached. */
export type Reach = Pick<JobRequest, 'rsh' | 'stage' | 'radix'>;

/** The way learns what it has to know while the job is still being prepared. */
export async function remoteAgentStarter(
  { rsh, stage, radix }: Reach,
  hosts: readonly HostSlots[],
  spares: readonly HostSlots[],
): Promise<StartAgent> {
  const bySlurm = rsh === 'auto' && [...hosts, ...spares].every(({ manager }) => manager === 'slurm');
  const copied = stage ? installedIdentity() : null;
  const way = await openWay(bySlurm ? BY_SLURM : rsh, hosts, copied);
  const shell = radix > 0 && hosts.length > radix ? await asTree(way, hosts, radix) : way;
  return agentStarterOver(shell, bySlurm ? null : copied);
}

/** `identity`: of what a host gets that lacks ncclrun; null: nothing. */
export function agentStarterOver(shell: RemoteShell, identity: Identity | null): StartAgent {
  return (host, order, handler) => new RemoteAgent({ shell, identity, host, order, handler });
}

/** Agents start others, where other hosts can be told how. */
async function asTree(way: RemoteShell, hosts: readonly HostSlots[], radix: number): Promise<RemoteShell> {
  if (!canBranch(way)) return way;
  const { TreeShell } = await import('./tree/tree-shell.ts');
  return new TreeShell(way, hosts, radix);
}

function canBranch(way: RemoteShell): way is BranchingShell {
  return 'branchWords' in way;
}

/** How one connection ended. */
interface AttemptEnd {
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
  readonly exit: RemoteExit;
  readonly staging: StagingTalk | null;
}

interface RemoteAgentOptions {
  readonly shell: RemoteShell;
  /** What a host gets that lacks ncclrun; null: nothing. */
  readonly identity: Identity | null;
  readonly host: HostSlots;
  readonly order: AgentOrder;
  readonly handler: ConnectionHandler;
}

class RemoteAgent implements AgentConnection {
  readonly #shell: RemoteShell;
  readonly #host: HostSlots;
  readonly #identity: Identity | null;
  readonly #order: Frame;
  readonly #terms: Pick<AgentOrder, 'leaseMs' | 'heartbeatMs'>;
  readonly #handler: ConnectionHandler;
  readonly #done: Promise<void>;
  #remote: RemoteProcess | null = null;
  /** From the agent's first word to the end of its link; null where another agent keeps it. */
  #lease: Lease | null = null;
  /** Until an agent speaks, what came after the order would be taken for a part of ncclrun by a host that lacks it. */
  #held: Frame[] | null = null;
  #closing = false;
  readonly #unwanted = Promise.withResolvers<void>();
  /** There is an agent. */
  #hasSpoken = false;
  #step = '';

  constructor({ shell, identity, host, order, handler }: RemoteAgentOptions) {
    this.#shell = shell;
    this.#identity = identity;
    this.#host = host;
    this.#order = makeFrame(FrameKind.order, { payload: encodeJson(order) });
    this.#terms = order;
    this.#handler = handler;
    this.#done = this.#run();
  }

  send(frame: Frame): void {
    if (frame.kind === FrameKind.suspend) this.#lease?.follow(frame);
    if (this.#held === null) this.#remote?.link.send(frame);
    else this.#held.push(frame);
  }

  #release(): void {
    const frames = this.#held ?? [];
    this.#held = null;
    for (const frame of frames) this.send(frame);
  }

  /** An agent whose ranks have ended is about to leave, any other leaves because its stdin ends. */
  async close(lost: boolean): Promise<void> {
    this.#closing = true;
    this.#unwanted.resolve();
    this.#remote?.link.close();
    if (this.#hasSpoken) this.#remote?.letGo(lost);
    else this.#remote?.kill();
    await this.#done;
  }

  /** By whatever way it is started. Who goes by way of another host hears of that one's silence first. */
  #watchStart(remote: RemoteProcess, onStall: (stall: StartStall) => void): StartWatch {
    const { heartbeatMs, leaseMs } = this.#terms;
    return new StartWatch({
      heartbeatMs,
      leaseMs: remote.isWatched === true ? leaseMs + 2 * heartbeatMs : leaseMs,
      connectMs: CONNECT_MS,
      loginMs: remote.loginMs ?? null,
      advanceMs: ADVANCE_MS,
      stoppedProcess: () => remote.stoppedProcess?.() ?? null,
      onStall,
    });
  }

  #keepLease(link: Link): Lease {
    return new Lease({
      ...this.#terms,
      sendHeartbeat: () => link.send(HEARTBEAT),
      onSilent: (silentMs) => {
        this.#handler.frame(silenceFrame(silentMs));
        if (!this.#closing) void this.close(true); // nobody counted on its own ranks, but it may have others behind it
      },
    });
  }

  /** Attempts until the agent speaks, then as long as it does. */
  async #run(): Promise<void> {
    let anew = false;
    for (let attempt = 1; ; attempt += 1) {
      const release = await this.#admitted();
      if (release === null) return this.#handler.closed({ problem: null, failure: null });
      this.#tell(attempt === 1 ? 'connecting' : `connecting, attempt ${attempt}`);
      const end = await this.#attempt(release, anew).finally(release);
      const problem = end.problem ?? sayLast(end.exit.remarks);
      if (this.#closing || end.spoke) return this.#handler.closed({ problem, failure: null });
      if (!anew && end.staging?.cachedIsBad === true && !end.hung && end.stall === null) {
        anew = true;
        continue;
      }
      if (attempt === MAX_ATTEMPTS || !this.#shell.isTransient(end.exit)) {
        return this.#handler.closed({ problem, failure: await this.#explain(end) });
      }
      await pause(attempt);
    }
  }

  /** Its turn, as a function that gives it back; null: it is not wanted any more. */
  async #admitted(): Promise<(() => void) | null> {
    const turn = this.#shell.admit?.(this.#host, connecting) ?? connecting.enter();
    await Promise.race([turn, this.#unwanted.promise]);
    if (!this.#closing) return turn;
    void turn.then((release) => release());
    return null;
  }

  /** One connection, to its end. `onSpoke` is called at the agent's first frame. `anew`: what the host has in its cache does not work. */
  async #attempt(onSpoke: () => void, anew: boolean): Promise<AttemptEnd> {
    const end: { -readonly [Key in keyof Omit<AttemptEnd, 'exit' | 'staging'>]: AttemptEnd[Key] } = {
      spoke: false,
      stall: null,
      began: false,
      hung: false,
      problem: null,
    };
    const command = this.#command(anew);
    let remote: RemoteProcess;
    let watch: StartWatch | null = null;
    try {
      remote = await this.#shell.start(this.#host, command, {
        way: (message) => this.#handler.way(message),
        step: (step) => {
          this.#tell(step);
          if (step === AGENT_START) watch?.login();
        },
        staging: (bytes) => this.#handler.staging(bytes),
      });
    } catch (error) {
      return { ...end, exit: failedExit(error), staging: null };
    }
    const { link, exit } = remote;
    this.#remote = remote;
    watch = this.#watchStart(remote, (stall) => {
      end.stall = stall;
      remote.kill();
    });
    const staging =
      this.#identity === null
        ? null
        : new StagingTalk({
            identity: this.#identity,
            host: this.#host.name,
            link,
            order: this.#order,
            onBegin: (bytes) => {
              this.#step = 'copying';
              this.#handler.staging(bytes);
            },
            giveUp: () => remote.kill(),
          });
    this.#held = staging === null ? null : [];
    link.open({
      frame: (frame) => {
        if (!end.spoke) {
          if (frame.kind === FrameKind.staging) {
            watch?.received(frame.flags !== StagingWord.alive);
            end.began = true;
            end.hung ||= frame.flags === StagingWord.hung;
            if (isSignOfLife(frame)) return;
          }
          if (staging?.takes(frame) === true) {
            if (isReady(frame)) this.#tell(AGENT_START);
            return;
          }
          end.spoke = this.#hasSpoken = true;
          watch?.stop();
          onSpoke();
          this.#release();
          if (remote.isWatched !== true) this.#lease = this.#keepLease(link);
        }
        this.#lease?.renew();
        if (frame !== HEARTBEAT) this.#handler.frame(frame); // that very one stands for a frame of somebody behind it
      },
      closed: (why) => {
        end.problem = why;
        this.#lease?.stop();
        if (why !== null) remote.kill();
      },
    });
    if (this.#closing) link.close();
    else link.send(this.#order);
    const exited = await exit;
    watch.stop();
    this.#lease?.stop();
    const remarks = withoutScript(exited.remarks, command);
    return { ...end, exit: { ...exited, remarks }, staging };
  }

  /** Not every way knows that the command runs, but the command may say so itself. */
  #tell(step: string): void {
    if (step !== this.#step) this.#handler.step(step);
    this.#step = step;
  }

  #command(anew: boolean): string {
    if (this.#identity === null) return installedCommand(installationRoot);
    const orderBytes = HEADER_BYTES + this.#order.payload.length;
    return remoteCommand({ root: installationRoot, identity: this.#identity, orderBytes, anew });
  }

  async #explain({
    exit,
    problem,
    stall,
    began,
    hung,
    staging,
  }: AttemptEnd): Promise<HostUnreachableFailure | AgentFailure> {
    const { name: host } = this.#host;
    const unstaged = (await staging?.failure(exit.remarks)) ?? null;
    if (unstaged !== null) return unstaged;
    if (exit.failure !== undefined) return exit.failure;
    if (hung || exit.status === HUNG_STATUS) return hungFailure(host, exit.remarks);
    if (stall !== null)
      return stallFailure(host, stall, { step: this.#step, trial: this.#shell.trial(this.#host, false) });
    const base = { type: 'agent', host, phase: 'hello' } as const;
    if (exit.status === COMMAND_NOT_FOUND || exit.status === COMMAND_NOT_EXECUTABLE) {
      const message = `ncclrun was not found on ${host}: looked for ${agentPath}`;
      return {
        ...base,
        message,
        remedy: `let it be copied there (--stage auto), or install ncclrun on ${host} at the same path as here`,
      };
    }
    if (exit.status === UNTRUSTED) {
      return {
        ...base,
        message: `ncclrun on ${host} may be another user's: ${sayLast(exit.remarks) ?? agentPath}`,
        remedy:
          'let it belong to you or root, writable by nobody else (chown, chmod go-w), or let ncclrun be copied there (--stage auto)',
      };
    }
    if (problem !== null) {
      const remedy = `this must print nothing to stdout: ${this.#shell.trial(this.#host, false)}; a login script there may do so only at a terminal`;
      return { ...base, message: `what came from ${host} is not ncclrun's agent: ${problem}`, remedy };
    }
    if (began && exit.problem === undefined && exit.status !== SSH_FAILED) return endedFailure(host, exit);
    return explainSsh(this.#host, exit, this.#shell.trial(this.#host, true));
  }
}

/** Nothing keeps the agent from starting any more. */
function isReady({ flags }: Frame): boolean {
  return flags === StagingWord.cached || flags === StagingWord.staged;
}

/** Of a host that is at work, or its watchdog: nothing to answer. */
function isSignOfLife({ flags }: Frame): boolean {
  return flags === StagingWord.alive || flags === StagingWord.hung;
}

function failedExit(error: unknown): RemoteExit {
  const remarks = messageOf(error);
  return { status: null, remarks, ...(error instanceof ConnectionError ? { problem: error.problem } : {}) };
}

/** Doubling, with jitter, so that many launchers do not come back at the same moment. */
async function pause(attempt: number): Promise<void> {
  const most = FIRST_PAUSE_MS * 2 ** attempt;
  await new Promise((resolve) => {
    setTimeout(resolve, most / 2 + Math.random() * (most / 2));
  });
}
