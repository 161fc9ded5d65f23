/**
 * Agents that serve one attempt of the job after the other: a remote one whose ranks have ended waits for the next order, and no new connection has
 * to be made. One that was lost is connected to anew.
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
      gone: () => this.#idle.delete(host.name),
    });
  };

  /** There is no further attempt. Resolves when nothing of the connections is left on our side. */
  async close(): Promise<void> {
    const all = [...this.#idle.values()];
    this.#idle.clear();
    await Promise.all(all.map((kept) => kept.end()));
  }
}

interface Owner {
  idle(kept: KeptAgent): void;
  gone(): void;
}

class KeptAgent implements AgentConnection {
  readonly #connection: AgentConnection;
  readonly #owner: Owner;
  #handler: ConnectionHandler | null;
  #isAskedToEnd = false;
  /** No rank is left there, and the agent waits. */
  #isDone = false;

  constructor(start: StartAgent, host: HostSlots, order: AgentOrder, handler: ConnectionHandler, owner: Owner) {
    this.#owner = owner;
    this.#handler = handler;
    this.#connection = start(host, order, {
      staging: (bytes) => this.#handler?.staging(bytes),
      frame: (frame) => this.#receive(frame),
      remoteShell: (message) => this.#handler?.remoteShell(message),
      step: (step) => this.#handler?.step(step),
      closed: (end) => this.#closed(end),
    });
  }

  again(order: AgentOrder, handler: ConnectionHandler): AgentConnection {
    this.#isAskedToEnd = this.#isDone = false;
    this.#handler = handler;
    this.#connection.send(makeFrame(FrameKind.order, { payload: encodeJson(order) }));
    return this;
  }

  send(frame: Frame): void {
    if (frame.kind === FrameKind.end) this.#isAskedToEnd = true;
    this.#connection.send(frame);
  }

  /** An agent that is done is kept. */
  async close(lost: boolean): Promise<void> {
    if (!this.#isDone) return this.#connection.close(lost);
    this.#handler = null;
    this.#owner.idle(this);
    return undefined;
  }

  end(): Promise<void> {
    return this.#connection.close(false);
  }

  #receive(frame: Frame): void {
    if (frame.kind === FrameKind.ended) this.#isDone = this.#isAskedToEnd;
    this.#handler?.frame(frame);
  }

  #closed(end: ConnectionEnd): void {
    this.#isDone = false;
    this.#owner.gone();
    this.#handler?.closed(end);
  }
}
