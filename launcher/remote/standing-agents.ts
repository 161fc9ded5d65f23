/** The agents of a launcher that runs several jobs, one after the other: they stay on their hosts in between. */
import type { AgentOrder } from '../../control/messages/link.ts';
import type { HostSlots } from '../model/types.ts';
import { KeptAgents } from './kept-agents.ts';
import type { RemoteOptions } from './remote-agent.ts';
import type { StartAgent } from './shell/connection.ts';
import { agentStarter } from './start.ts';

export class StandingAgents {
  /** By how which hosts are reached. */
  readonly #kept = new Map<string, Promise<KeptAgents>>();

  /** As agentStarter. The agents of a resource manager, and those behind other agents, do not stay. */
  readonly starter: typeof agentStarter = async (reach, hosts, spares) => {
    if (!mayStay(reach, [...hosts, ...spares])) return await agentStarter(reach, hosts, spares);
    const key = keyOf(reach, [...hosts, ...spares]);
    const known = this.#kept.get(key) ?? agentStarter(reach, hosts, spares).then((start) => new KeptAgents(start));
    this.#kept.set(key, known);
    try {
      return staying((await known).start);
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  };

  /** No further job follows. Resolves when nothing of the connections is left on our side. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#kept.values(), async (kept) => (await kept).close()));
  }
}

function staying(start: StartAgent): StartAgent {
  return (host, order, handler) => start(host, { ...order, stays: true } satisfies AgentOrder, handler);
}

function mayStay({ radix }: RemoteOptions, hosts: readonly HostSlots[]): boolean {
  return hosts.every(({ manager }) => manager === undefined) && (radix === 0 || hosts.length <= radix);
}

/** Without what differs from job to job on the same hosts. */
function keyOf({ rsh, stage, radix, portRange }: RemoteOptions, hosts: readonly HostSlots[]): string {
  const places = hosts.map(({ name, target, user, port, local, simulated }) => [
    name,
    target,
    user,
    port,
    local,
    simulated,
  ]);
  return JSON.stringify([rsh, stage, radix, portRange, places]);
}
