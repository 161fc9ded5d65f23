/** Which way leads to a host's agent. The ways to remote hosts are loaded only where there are any. */
import type { AgentOrder } from '../../control/messages/link.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostSlots } from '../job/types.ts';
import type { AgentConnection, ConnectionHandler, StartAgent } from './connection.ts';
import { startLocalAgent } from './local.ts';

/** `rsh` is --rsh: openssh, or auto; else a command that is given host and command line, as ssh is. */
export function agentStarter(rsh: string): StartAgent {
  return (host, order, handler) =>
    host.local ? startLocalAgent(host, order, handler) : new LazyConnection(rsh, host, order, handler);
}

/** A connection while its module is being loaded. */
class LazyConnection implements AgentConnection {
  readonly #opened: Promise<AgentConnection>;
  #connection: AgentConnection | null = null;
  #unsent: Frame[] = [];

  constructor(rsh: string, host: HostSlots, order: AgentOrder, handler: ConnectionHandler) {
    this.#opened = this.#open(rsh, host, order, handler);
  }

  send(frame: Frame): void {
    if (this.#connection === null) this.#unsent.push(frame);
    else this.#connection.send(frame);
  }

  async close(gently: boolean): Promise<void> {
    await (await this.#opened).close(gently);
  }

  async #open(rsh: string, host: HostSlots, order: AgentOrder, handler: ConnectionHandler): Promise<AgentConnection> {
    const { startRemoteAgent } = await import('./remote-agent.ts');
    const connection = startRemoteAgent(rsh, host, order, handler);
    this.#connection = connection;
    for (const frame of this.#unsent) connection.send(frame);
    this.#unsent = [];
    return connection;
  }
}
