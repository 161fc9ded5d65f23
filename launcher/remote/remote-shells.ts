/** The remote shells, by --rsh. Each is loaded only where it is used. */
import { basename } from 'node:path';
import type { PortRange } from '../../control/port-range.ts';
import type { HostSlots } from '../model/types.ts';
import { destinationOf, type RemoteShell } from './shell/shell.ts';
import type { InstallationIdentity } from './staging/identity.ts';
import { dialPath } from '../local/host.ts';
import { SshConfiguration } from './ssh-config/configuration.ts';
import { usageError } from '../model/usage-error.ts';
import { splitWords } from './shell/split-words.ts';
import { widenThreadPool } from './shell/thread-pool.ts';
import { nextIteration } from './shell/next-iteration.ts';

/** Where a resource manager starts what runs on its hosts. */
export const BY_SLURM = 'by Slurm';

/**
 * `rsh`: BY_SLURM, auto, ssh2, openssh, or a command that is called as CMD host command; a command that is an ssh is called as ssh.
 * `copied`: what hosts get that lack ncclrun, where the shell itself brings it; null: nothing. `portRange`: ports on
 * which agents call back, where the shell has them do so.
 */
export async function openRemoteShell(
  rsh: string,
  hosts: readonly HostSlots[],
  copied: InstallationIdentity | null,
  portRange: PortRange | null,
): Promise<RemoteShell> {
  if (rsh === BY_SLURM) {
    const { openSlurm } = await import('./slurm/steps.ts');
    return openSlurm(hosts, copied, portRange);
  }
  if (rsh === 'auto' || rsh === 'ssh2') {
    widenThreadPool(hosts.length);
    const configuration = new SshConfiguration();
    for (const host of hosts) void configuration.of(destinationOf(host));
    const { Ssh2 } = await loadSsh2();
    const ssh2 = new Ssh2(configuration);
    if (rsh === 'ssh2') return ssh2;
    const [{ AutoShell }, { OpenSsh }] = await Promise.all([import('./auto.ts'), import('./openssh.ts')]);
    return new AutoShell(ssh2, new OpenSsh(['ssh'], configuration, dialPath), configuration);
  }
  const words = rsh === 'openssh' ? ['ssh'] : splitWords(rsh);
  if (words === null) throw usageError(`--rsh ${rsh}: a quote is not closed`, 'quote as for a shell');
  if (basename(words[0] ?? '') === 'ssh') {
    const { OpenSsh } = await import('./openssh.ts');
    return new OpenSsh(words, new SshConfiguration(words), dialPath);
  }
  const { CommandShell } = await import('./command-shell.ts');
  return new CommandShell(words);
}

/** In parts, with iterations of the event loop between them: meanwhile ssh answers. Statically imported, as import() of Node's own runs all their getters. */
async function loadSsh2(): Promise<typeof import('./ssh2/ssh2.ts')> {
  await import('./ssh2/dial.ts');
  await nextIteration();
  await import('./known-hosts/match.ts');
  await nextIteration();
  return await import('./ssh2/ssh2.ts');
}
