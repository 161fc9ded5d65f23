/**
 * Agents that serve one order after the other: a remote one whose ranks have ended waits for the next order, and no new connection has to be made.
 * The orders are the attempts of a job, or the jobs of a standing launcher. One that was lost is connected to anew.
 */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { HostSlots } from '../model/types.ts';
import type { AgentConnection, ConnectionEnd, ConnectionHandler, StartAgent } from './shell/connection.ts';

export class KeptAgents {
  readonly #startAgent: StartAgent;
  /** By host: those that wait for an order. */
  readonly #idle = new Map<string, KeptAgent>();

  constructor(startAgent: StartAgent) {
    this.#startAgent = startAgent;
  }

  readonly start: StartAgent = (host, order, handler) => {
    if (host.local) return this.#startAgent(host, order, handler);
    const known = this.#idle.get(host.name);
    this.#idle.delete(host.name);
    if (known !== undefined) return known.again(order, handler);
    return new KeptAgent(this.#startAgent, host, order, handler, {
      idle: (kept) => this.#idle.set(host.name, kept),
      gone: (kept) => {
        if (this.#idle.get(host.name) === kept) this.#idle.delete(host.name);
      },
    });
  };

  /** No further order follows. Resolves when nothing of the connections is left on our side. */
  async close(): Promise<void> {
    const all = [...this.#idle.values()];
    this.#idle.clear();
    await Promise.all(all.map((kept) => kept.end()));
  }
}

interface Owner {
  idle(kept: KeptAgent): void;
  gone(kept: KeptAgent): void;
}

class KeptAgent implements AgentConnection {
  readonly #start: StartAgent;
  readonly #host: HostSlots;
  readonly #owner: Owner;
  #connection: AgentConnection;
  #handler: ConnectionHandler | null;
  /** The order that the agent got while it waited, until it has answered. */
  #unanswered: AgentOrder | null = null;
  #isAskedToEnd = false;
  /** No rank is left there, and the agent waits. */
  #isDone = false;
  /** Somebody behind us has sent an order of its own, after which the agent may leave. */
  #mayLeave = false;

  constructor(start: StartAgent, host: HostSlots, order: AgentOrder, handler: ConnectionHandler, owner: Owner) {
    this.#start = start;
    this.#host = host;
    this.#owner = owner;
    this.#handler = handler;
    this.#connection = this.#connect(order);
  }

  again(order: AgentOrder, handler: ConnectionHandler): AgentConnection {
    this.#isAskedToEnd = this.#isDone = false;
    this.#handler = handler;
    this.#unanswered = order;
    this.#connection.send(makeFrame(FrameKind.order, { payload: encodeJson(order) }));
    return this;
  }

  send(frame: Frame): void {
    if (frame.kind === FrameKind.end) this.#isAskedToEnd = true;
    if (frame.kind === FrameKind.order) {
      this.#isAskedToEnd = this.#isDone = false;
      this.#mayLeave = true;
    }
    this.#connection.send(frame);
  }

  /** An agent that is done is kept. */
  async close(lost: boolean): Promise<void> {
    this.#unanswered = null;
    if (!this.#isDone || this.#mayLeave) return this.#connection.close(lost);
    this.#handler = null;
    this.#owner.idle(this);
    return undefined;
  }

  end(): Promise<void> {
    return this.#connection.close(false);
  }

  #connect(order: AgentOrder): AgentConnection {
    return this.#start(this.#host, order, {
      staging: (bytes) => this.#handler?.staging(bytes),
      frame: (frame) => this.#receive(frame),
      remoteShell: (message) => this.#handler?.remoteShell(message),
      step: (step) => this.#handler?.step(step),
      closed: (end) => this.#closed(end),
    });
  }

  #receive(frame: Frame): void {
    if (this.#unanswered !== null) {
      if (frame.kind !== FrameKind.hello && frame.kind !== FrameKind.failure) return; // of the order before
      if (frame.kind === FrameKind.hello) this.#unanswered = null;
    }
    if (frame.kind === FrameKind.ended) this.#isDone = this.#isAskedToEnd;
    this.#handler?.frame(frame);
  }

  /** An agent that has left, or was lost, while it waited has done nothing of an order that it has not answered. */
  #closed(end: ConnectionEnd): void {
    this.#isDone = false;
    this.#owner.gone(this);
    const order = this.#unanswered;
    this.#unanswered = null;
    if (order !== null && !this.#isAskedToEnd) this.#connection = this.#connect(order);
    else this.#handler?.closed(end);
  }
}
