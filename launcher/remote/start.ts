/** Starts each host's agent, here or through a remote shell. Remote shells are loaded only where there are remote hosts. */
import type { HostSlots } from '../model/types.ts';
import type { StartAgent } from './shell/connection.ts';
import type { RemoteOptions } from './remote-agent.ts';
import { startLocalAgent } from '../local/host.ts';

function remote(hosts: readonly HostSlots[]): HostSlots[] {
  return hosts.filter((host) => !host.local);
}

/** `spares` may be started on later. */
export async function agentStarter(
  reach: RemoteOptions,
  hosts: readonly HostSlots[],
  spares: readonly HostSlots[],
): Promise<StartAgent> {
  if ([...hosts, ...spares].every((host) => host.local)) return startLocalAgent;
  const { remoteAgentStarter } = await import('./remote-agent.ts');
  const startRemoteAgent = await remoteAgentStarter(reach, remote(hosts), remote(spares));
  return (host, order, handler) => (host.local ? startLocalAgent : startRemoteAgent)(host, order, handler);
}
