/**
 * This process's lease with the launcher, and the agents of other hosts that the launcher reaches through it. It lasts as long as the link, from
 * the first order to the end of the last agent behind it.
 */
import { HEARTBEAT, Lease } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import { ChildAgents, type StartChild } from './child-agents.ts';
import { TcpSilence, type TcpConnection } from './tcp-silence.ts';

export type LeaseTerms = Pick<AgentOrder, 'leaseMs' | 'heartbeatMs'>;

export class Uplink {
  readonly #lease: Lease;
  readonly #children: ChildAgents;
  readonly #terms: LeaseTerms;
  readonly #lost: (silentMs: number) => void;
  #whileStopped: TcpSilence | null = null;

  /** `silent`: the launcher was silent for longer than the lease. `startChild`: for tests. */
  constructor(link: Link, terms: LeaseTerms, silent: (silentMs: number) => void, startChild?: StartChild) {
    const children = new ChildAgents(link, terms, startChild);
    this.#children = children;
    this.#terms = terms;
    this.#lost = (silentMs) => {
      silent(silentMs);
      children.end(); // they get nothing from the launcher any more either, and need not wait for that
    };
    this.#lease = new Lease({ ...terms, sendHeartbeat: () => link.send(HEARTBEAT), onSilent: this.#lost });
  }

  /** Sets the link's TCP connection, whose acknowledgements replace heartbeats while the job is suspended. */
  liesIn(connection: TcpConnection): void {
    const { heartbeatMs, leaseMs } = this.#terms;
    this.#whileStopped = new TcpSilence({ connection, everyMs: heartbeatMs, leaseMs, onSilent: this.#lost });
  }

  /** True: the frame is for nobody else. @throws ProtocolError for one that makes no sense */
  receive(frame: Frame): boolean {
    this.#lease.renew();
    switch (frame.kind) {
      case FrameKind.heartbeat:
        this.#children.beat();
        return true;
      case FrameKind.childAgent:
        this.#children.receive(frame);
        return true;
      case FrameKind.suspend:
        this.#lease.follow(frame);
        if (frame.flags === 1) this.#whileStopped?.watch();
        else this.#whileStopped?.stop();
        return false;
      default:
        return false;
    }
  }

  /** Nothing runs here that the launcher's end would have to end; those behind judge for themselves. */
  idle(): void {
    this.#whileStopped?.stop();
    this.#lease.suspend();
  }

  /** There is another order. */
  busy(): void {
    this.#lease.resume();
  }

  /** Resolves when no agent is left behind this one, at once or later. */
  get none(): Promise<void> {
    return this.#children.none;
  }

  /** The launcher is gone. */
  end(): void {
    this.#children.end();
  }
}
