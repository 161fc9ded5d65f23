/** The steps of a job's agents: one, unless hosts have different numbers of GPUs. */
import type { PortRange } from '../../../control/port-range.ts';
import type { HostSlots } from '../../model/types.ts';
import type { ConnectionProgress } from '../shell/connection.ts';
import type { RemoteProcess, RemoteShell } from '../shell/shell.ts';
import type { InstallationIdentity } from '../staging/identity.ts';
import { SlurmShell } from './slurm.ts';

/** The arguments are SlurmShell's. */
export function openSlurm(
  hosts: readonly HostSlots[],
  identity: InstallationIdentity | null,
  portRange: PortRange | null,
): RemoteShell {
  const shell = (kind: readonly HostSlots[]): SlurmShell => new SlurmShell(kind, identity, portRange);
  const kinds = Array.from(Map.groupBy(hosts, stepOf).values());
  const [first = shell(hosts), ...others] = kinds.map(shell);
  if (others.length === 0) return first;
  const shells = [first, ...others];
  const shellOf = new Map(kinds.flatMap((kind, index) => kind.map(({ name }) => [name, shells[index]] as const)));
  return {
    start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
      return (shellOf.get(host.name) ?? first).start(host, command, making);
    },
    trial: (host) => first.trial(host),
    isTransient: () => false,
  };
}

/** Equal for hosts of one step: --gres counts for each host, --gpus for all of a step. */
function stepOf({ name, gpuOption = '' }: HostSlots): string {
  return gpuOption?.startsWith('--gpus=') === true ? `${gpuOption} on ${name}` : `${gpuOption}`;
}
