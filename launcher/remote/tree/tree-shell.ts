/**
 * Many hosts: the agents that are there start others, each by the remote shell of its own host. Whether hosts reach each other so is known once one has
 * tried; where they do not, the launcher reaches all of them by itself.
 */
import { HEARTBEAT } from '../../../control/link/lease.ts';
import type { Link } from '../../../control/link/link.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { HostSlots } from '../../model/types.ts';
import type { ConnectionProgress } from '../shell/connection.ts';
import type { Limiter } from '../shell/limiter.ts';
import type { PortableShell, RemoteExit, RemoteProcess, RemoteShell } from '../shell/shell.ts';
import { lastLine } from '../shell/last-line.ts';
import { parentOf } from './shape.ts';
import { AgentMultiplexer } from './agent-multiplexer.ts';

export class TreeShell implements RemoteShell {
  readonly #direct: PortableShell;
  readonly #radix: number;
  readonly #indexes: ReadonlyMap<string, number>;
  /** By index: it is known whether its agent can start others. */
  readonly #settled: readonly PromiseWithResolvers<void>[];
  readonly #multiplexers = new Map<number, AgentMultiplexer>();
  /** By host: how its next start goes; those that are not here are reached directly. */
  readonly #routes = new Map<string, AgentMultiplexer>();
  /** No other host reaches them. */
  readonly #unreached = new Set<string>();
  #isTried = false;
  readonly #works = Promise.withResolvers<boolean>();

  constructor(direct: PortableShell, hosts: readonly HostSlots[], radix: number) {
    this.#direct = direct;
    this.#radix = radix;
    this.#indexes = new Map(hosts.map(({ name }, index) => [name, index]));
    this.#settled = hosts.map(() => Promise.withResolvers<void>());
  }

  /** Hosts that others start need no slot of the launcher's. */
  async admit(host: HostSlots, connecting: Limiter): Promise<() => void> {
    const multiplexer = await this.#multiplexerOf(host);
    if (multiplexer === null) {
      this.#routes.delete(host.name);
      return connecting.enter();
    }
    this.#routes.set(host.name, multiplexer);
    return () => undefined;
  }

  async start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
    const multiplexer = this.#routes.get(host.name);
    if (multiplexer === undefined) return this.#asMultiplexer(host, await this.#direct.start(host, command, making));
    making.step(`through ${multiplexer.host}`);
    const child = multiplexer.grow(this.#direct.commandLine(host, command));
    return this.#asMultiplexer(host, this.#watched(host, multiplexer, child, making));
  }

  mayFailWith(status: number): boolean {
    return this.#direct.mayFailWith?.(status) ?? true;
  }

  trial(host: HostSlots, verbose: boolean): string {
    return this.#direct.trial(host, verbose);
  }

  isTransient(exit: RemoteExit): boolean {
    return exit.problem === undefined ? this.#direct.isTransient(exit) : exit.problem.transient;
  }

  async #multiplexerOf(host: HostSlots): Promise<AgentMultiplexer | null> {
    const index = this.#indexes.get(host.name);
    const parent = index === undefined ? null : parentOf(index, this.#radix);
    if (parent === null || this.#unreached.has(host.name)) return null;
    await this.#settled[parent]?.promise;
    if (this.#isTried && !(await this.#works.promise)) return null;
    const multiplexer = this.#multiplexers.get(parent) ?? null;
    if (multiplexer !== null) this.#isTried = true;
    return multiplexer;
  }

  /** The host's agent may start others from its first word on. */
  #asMultiplexer(host: HostSlots, remote: RemoteProcess): RemoteProcess {
    const index = this.#indexes.get(host.name);
    if (index === undefined) return remote;
    const multiplexer = new AgentMultiplexer(host.name, remote.link);
    const closed = (): void => {
      if (this.#multiplexers.get(index) === multiplexer) this.#multiplexers.delete(index);
      this.#settled[index]?.resolve();
    };
    // Hosts that are reached through this one are lost after it, and because of it.
    void remote.exit.then(closed).then(() => setImmediate(() => multiplexer.end()));
    const link = tapped(remote.link, {
      frame: (frame) => {
        if (frame.kind === FrameKind.childAgent) return receive(multiplexer, frame, remote);
        if (frame.kind !== FrameKind.staging && !this.#multiplexers.has(index)) {
          this.#multiplexers.set(index, multiplexer);
          this.#settled[index]?.resolve();
        }
        return false;
      },
      closed,
      closing: () => multiplexer.settle(),
    });
    return { ...remote, link };
  }

  /** Where the child agent does not answer, the launcher tries by itself. */
  #watched(
    host: HostSlots,
    multiplexer: AgentMultiplexer,
    child: RemoteProcess,
    making: ConnectionProgress,
  ): RemoteProcess {
    let answered = false;
    const link = tapped(child.link, {
      frame: () => {
        answered = true;
        this.#works.resolve(true);
        return false;
      },
      closed: () => undefined,
      closing: () => undefined,
    });
    const exit = child.exit.then((end): RemoteExit => {
      if (answered) return end;
      this.#works.resolve(false);
      this.#unreached.add(host.name);
      const detail = lastLine(end.stderr) ?? `status ${end.status}`;
      making.remoteShell(`reached from here, since ${multiplexer.host} could not reach it: ${detail}`);
      return { ...end, problem: { cause: 'other', detail, remedy: null, transient: true } };
    });
    return { ...child, link, exit };
  }
}

interface Tap {
  /** True: the frame is not for whoever reads the link, to whom it is a sign of life. */
  frame(frame: Frame): boolean;
  closed(): void;
  /** Nothing can be sent after this. */
  closing(): void;
}

/** The link, with an observer of all its frames. */
function tapped(link: Link, tap: Tap): Link {
  return {
    open: (handler) =>
      link.open({
        frame: (frame) => {
          handler.frame(tap.frame(frame) ? HEARTBEAT : frame);
        },
        closed(problem) {
          handler.closed(problem);
          tap.closed();
        },
      }),
    send: (frame) => link.send(frame),
    flush: () => link.flush(),
    close() {
      tap.closing();
      link.close();
    },
  };
}

/** An agent that speaks nonsense is ended: its host is lost. */
function receive(multiplexer: AgentMultiplexer, frame: Frame, remote: RemoteProcess): true {
  try {
    multiplexer.receive(frame);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    remote.kill();
  }
  return true;
}
