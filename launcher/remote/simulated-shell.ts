/** Starts the agents of hosts that this machine plays: each knows itself by its host's name alone. */
import type { HostSlots } from '../model/types.ts';
import { runShell } from './command-shell.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell/shell.ts';

export class SimulatedShell implements RemoteShell {
  // An error here is one of the promise, as with the other shells.
  async start({ name }: HostSlots, command: string): Promise<RemoteProcess> {
    return runShell(['/bin/sh', '-c', command], [`NCCL_HOSTID=${name}`]);
  }

  trial(): string {
    return '/bin/sh -c true';
  }

  isTransient(_exit: RemoteExit): boolean {
    return false;
  }
}
