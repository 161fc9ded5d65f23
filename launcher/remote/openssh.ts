/** The system's ssh. It reads the user's configuration, keys, certificates and known hosts as always; it never asks anything. */
import { basename } from 'node:path';
import type { HostUnreachableFailure } from '../job/failure.ts';
import type { HostSlots } from '../job/types.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { startTool } from './local.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell.ts';
import { explainSsh, isTransientSsh } from './ssh-complaint.ts';
import { SshSettings } from './ssh-settings.ts';

/**
 * No prompt, no terminal, no forwarding: a command and its streams. The lease on the link finds a silent host sooner than
 * ServerAlive does; that one only ends an ssh whose launcher was killed while the host was cut off.
 */
const fixedOptions = [
  ['BatchMode', 'yes'],
  ['ForwardAgent', 'no'],
  ['ForwardX11', 'no'],
  ['ClearAllForwardings', 'yes'],
  ['PermitLocalCommand', 'no'],
  ['ControlMaster', 'no'],
  ['UpdateHostKeys', 'no'],
  ['RemoteCommand', 'none'],
  ['ServerAliveInterval', '30'],
  ['LogLevel', 'ERROR'],
] as const;

export class OpenSsh implements RemoteShell {
  readonly #command: readonly string[];
  /** Null for a command that is no ssh. */
  readonly #settings: SshSettings | null;

  /** `rsh`: auto and openssh mean ssh as the PATH has it; else a command, called with [-l user] [-p port] -- host command. */
  constructor(rsh: string, dialPath: string) {
    this.#command = rsh === 'auto' || rsh === 'openssh' ? ['ssh'] : rsh.split(/\s+/).filter(Boolean);
    this.#settings = basename(this.#command[0] ?? '') === 'ssh' ? new SshSettings(this.#command, dialPath) : null;
  }

  async start(host: HostSlots, command: string): Promise<RemoteProcess> {
    const settings = this.#settings === null ? [] : await this.#options(this.#settings, host);
    const link = startTool([...this.#command, ...settings, ...destination(host), command]);
    const exit = link.died.then(({ waitStatus, remarks }) => {
      link.release();
      return { status: waitStatus === null ? null : exitOf(waitStatus).exitCode, remarks };
    });
    return { link, exit, kill: () => link.kill() };
  }

  async #options(known: SshSettings, host: HostSlots): Promise<string[]> {
    const settings = await known.options(destination(host));
    return ['-T', '-x', '-a', ...[...fixedOptions, ...settings].flatMap(([name, value]) => ['-o', `${name}=${value}`])];
  }

  explain(host: HostSlots, exit: RemoteExit): HostUnreachableFailure {
    return explainSsh(host, exit);
  }

  isTransient({ remarks }: RemoteExit): boolean {
    return isTransientSsh(remarks);
  }
}

/** User and port of the hostfile, before the name: what begins with a dash is still a name. */
function destination({ name, user, port }: HostSlots): string[] {
  return [...(user === null ? [] : ['-l', user]), ...(port === null ? [] : ['-p', String(port)]), '--', name];
}
