/** Which way leads to a host's agent. The ways to remote hosts are loaded only where there are any. */
import type { HostSlots } from '../job/types.ts';
import type { StartAgent } from './connection.ts';
import { startLocalAgent } from './local.ts';

/**
 * `rsh` is --rsh: auto, ssh2, openssh; else a command that is given host and command line. `stage`: hosts without ncclrun get it.
 */
export async function agentStarter(rsh: string, stage: boolean, hosts: readonly HostSlots[]): Promise<StartAgent> {
  if (hosts.every((host) => host.local)) return startLocalAgent;
  const { remoteAgentStarter } = await import('./remote-agent.ts');
  const startRemoteAgent = await remoteAgentStarter(
    rsh,
    stage,
    hosts.filter((host) => !host.local),
  );
  return (host, order, handler) => (host.local ? startLocalAgent : startRemoteAgent)(host, order, handler);
}
