/** An agent on another host, over the standard streams of a remote shell's command. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { AgentFailure, HostUnreachableFailure } from '../job/failure.ts';
import type { HostSlots } from '../job/types.ts';
import type { AgentConnection, ConnectionHandler, StartAgent } from './connection.ts';
import { agentPath } from './local.ts';
import { Limiter } from './limiter.ts';
import { quote } from './shell.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell.ts';
import { TroubleError } from './trouble.ts';
import { openWay } from './ways.ts';

/** Connections being made at once; more only make each other slower. */
const MAX_CONNECTING = 32;
const MAX_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;
/** From the shell's start to the agent's first word. */
const HELLO_DEADLINE_MS = 60_000;
/** Status of a login shell that does not find the command. */
const COMMAND_NOT_FOUND = 127;
const COMMAND_NOT_EXECUTABLE = 126;

const connecting = new Limiter(MAX_CONNECTING);

/** The way learns what it has to know while the job is still being prepared. */
export async function remoteAgentStarter(rsh: string): Promise<StartAgent> {
  const shell = await openWay(rsh);
  return (host, order, handler) => new RemoteAgent(shell, host, order, handler);
}

/** How one connection ended. */
interface AttemptEnd {
  /** The agent did. */
  readonly spoke: boolean;
  /** We ended it, since no agent had spoken for long. */
  readonly silent: boolean;
  /** What broke the link; null for a clean end. */
  readonly problem: string | null;
  readonly exit: RemoteExit;
}

class RemoteAgent implements AgentConnection {
  readonly #shell: RemoteShell;
  readonly #host: HostSlots;
  readonly #order: AgentOrder;
  readonly #handler: ConnectionHandler;
  readonly #done: Promise<void>;
  #remote: RemoteProcess | null = null;
  #closing = false;

  constructor(shell: RemoteShell, host: HostSlots, order: AgentOrder, handler: ConnectionHandler) {
    this.#shell = shell;
    this.#host = host;
    this.#order = order;
    this.#handler = handler;
    this.#done = this.#run();
  }

  send(frame: Frame): void {
    this.#remote?.link.send(frame);
  }

  /** An agent whose ranks have ended is about to leave, any other leaves because its stdin ends: the shell is not waited for. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#remote?.link.close();
    this.#remote?.kill();
    await this.#done;
  }

  /** Attempts until the agent speaks, then as long as it does. */
  async #run(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const release = await connecting.enter();
      if (this.#closing) {
        release();
        return this.#handler.closed({ problem: null, failure: null });
      }
      const end = await this.#attempt(release).finally(release);
      const problem = end.problem ?? sayLast(end.exit.remarks);
      if (this.#closing || end.spoke) return this.#handler.closed({ problem, failure: null });
      if (attempt === MAX_ATTEMPTS || !this.#shell.isTransient(end.exit)) {
        return this.#handler.closed({ problem, failure: this.#explain(end) });
      }
      await pause(attempt);
    }
  }

  /** One connection, to its end. `onSpoke` is called at the agent's first frame. */
  async #attempt(onSpoke: () => void): Promise<AttemptEnd> {
    const end: { spoke: boolean; silent: boolean; problem: string | null } = {
      spoke: false,
      silent: false,
      problem: null,
    };
    let remote: RemoteProcess;
    try {
      remote = await this.#shell.start(this.#host, `exec ${quote(agentPath)}`, (message) => this.#handler.way(message));
    } catch (error) {
      return { ...end, exit: failedExit(error) };
    }
    const { link, exit } = remote;
    this.#remote = remote;
    const silence = setTimeout(() => {
      end.silent = true;
      remote.kill();
    }, HELLO_DEADLINE_MS);
    link.open({
      frame: (frame) => {
        if (!end.spoke) {
          end.spoke = true;
          clearTimeout(silence);
          onSpoke();
        }
        this.#handler.frame(frame);
      },
      closed: (why) => {
        end.problem = why;
        if (why !== null) remote.kill();
      },
    });
    if (this.#closing) link.close();
    else link.send(makeFrame(FrameKind.order, { payload: encodeJson(this.#order) }));
    const exited = await exit;
    clearTimeout(silence);
    return { ...end, exit: exited };
  }

  #explain({ exit, problem, silent }: AttemptEnd): HostUnreachableFailure | AgentFailure {
    const { name: host } = this.#host;
    const base = { type: 'agent', host, phase: 'hello' } as const;
    if (exit.status === COMMAND_NOT_FOUND || exit.status === COMMAND_NOT_EXECUTABLE) {
      const message = `ncclrun was not found on ${host}: looked for ${agentPath}`;
      return {
        ...base,
        message,
        remedy: `install ncclrun on ${host} at the same path as here, or share it by a network file system`,
      };
    }
    if (silent) {
      const cause = { type: 'host-unreachable', host, phase: 'hello', cause: 'timeout' } as const;
      return {
        ...cause,
        detail: sayLast(exit.remarks) ?? 'connected, but no agent answered',
        remedy: `try: ssh ${host} true`,
      };
    }
    if (problem !== null) {
      const remedy = `a login script on ${host} must not print to stdout when no terminal is there`;
      return { ...base, message: `what came from ${host} is not ncclrun's agent: ${problem}`, remedy };
    }
    return this.#shell.explain(this.#host, exit);
  }
}

function failedExit(error: unknown): RemoteExit {
  const remarks = error instanceof Error ? error.message : String(error);
  return { status: null, remarks, ...(error instanceof TroubleError ? { trouble: error.trouble } : {}) };
}

/** The last line that the remote side said, to tell a broken link by. */
function sayLast(stderr: string): string | null {
  return stderr.trim().split('\n').at(-1)?.trim() || null;
}

/** Doubling, with jitter, so that many launchers do not come back at the same moment. */
async function pause(attempt: number): Promise<void> {
  const most = FIRST_PAUSE_MS * 2 ** attempt;
  await new Promise((resolve) => {
    setTimeout(resolve, most / 2 + Math.random() * (most / 2));
  });
}
