/** What one host's agent may say how often. Output has its credit, ranks their states; this is for what has neither. */
import { Allowance } from '../../control/link/allowance.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';

/** An agent sends one each second, to the launcher or to the agent that it is reached by. */
const HEARTBEATS = { what: 'heartbeats', atOnce: 100, perSecond: 10 };
/** AgentReport: notices, errors of GPUs, hangs and answers to questions. A host with many ranks has some of each for every one. */
const REPORTS = { what: 'reports', atOnce: 2000, perSecond: 20 };

export class HostBounds {
  readonly #heartbeats = new Allowance(HEARTBEATS);
  readonly #reports = new Allowance(REPORTS);
  #hasHello = false;
  /** Questions that are still to be answered. */
  #suspensions = 0;

  /** @throws ProtocolError, like all that follow, where it is one too many */
  hello(): void {
    if (this.#hasHello) throw new ProtocolError('a second hello');
    this.#hasHello = true;
  }

  heartbeat(): void {
    this.#heartbeats.use();
  }

  report(): void {
    this.#reports.use();
  }

  suspensionAsked(): void {
    this.#suspensions += 1;
  }

  suspended(): void {
    if (this.#suspensions === 0) throw new ProtocolError('its ranks are suspended, which nobody asked for');
    this.#suspensions -= 1;
  }
}
