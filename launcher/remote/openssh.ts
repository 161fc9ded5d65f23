/** The system's ssh. It reads the user's configuration, keys, certificates and known hosts as always; it never asks anything. */
import type { HostSlots } from '../model/types.ts';
import { runShell } from './command-shell.ts';
import { destinationOf, SSH_FAILED, sshTrial } from './shell/shell.ts';
import type { PortableShell, RemoteExit, RemoteProcess } from './shell/shell.ts';
import { ALIVE_COUNT, ALIVE_SECONDS } from './shell/silence.ts';
import { isTransientSsh } from './ssh-error.ts';
import { destinationWords } from './ssh-config/configuration.ts';
import type { SshConfiguration } from './ssh-config/configuration.ts';
import { OpenSshOptions, type SshOption } from './ssh-config/openssh-options.ts';

/**
 * No prompt, no terminal, no forwarding: a command and its streams. ServerAlive finds out hosts that fall silent before their agent speaks; later the
 * lease on the link does so sooner. It also ends an ssh whose launcher was killed while the host was cut off.
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
  ['ServerAliveInterval', String(ALIVE_SECONDS)],
  ['ServerAliveCountMax', String(ALIVE_COUNT)],
  // At ERROR it would not say why it ends: that the server did not respond, that a key is missing.
  ['LogLevel', 'INFO'],
] as const;

export class OpenSsh implements PortableShell {
  readonly #command: readonly string[];
  readonly #options: OpenSshOptions;

  /** `command`: ssh and its first arguments, those that `configuration` was asked with. */
  constructor(command: readonly string[], configuration: SshConfiguration, dialPath: string) {
    this.#command = command;
    this.#options = new OpenSshOptions(configuration, dialPath);
  }

  async start(host: HostSlots, command: string): Promise<RemoteProcess> {
    const destination = wordsFor(host);
    const words = this.#words(await this.#options.options(destination), destination, command);
    return runShell(words, await this.#options.environment());
  }

  /** By the configuration of the host that runs it. */
  commandLine(host: HostSlots, command: string): readonly string[] {
    return this.#words([], wordsFor(host), command);
  }

  #words(more: readonly SshOption[], destination: readonly string[], command: string): readonly string[] {
    const options = [...fixedOptions, ...more].flatMap(([setting, value]) => ['-o', `${setting}=${value}`]);
    return [...this.#command, '-T', '-x', '-a', ...options, ...destination, command];
  }

  trial(host: HostSlots, verbose: boolean): string {
    return sshTrial(this.#command, host, verbose);
  }

  mayFailWith(status: number): boolean {
    return status === SSH_FAILED;
  }

  isTransient({ status, stderr }: RemoteExit): boolean {
    return (status === null || this.mayFailWith(status)) && isTransientSsh(stderr);
  }
}

function wordsFor(host: HostSlots): string[] {
  const { name, user, port } = destinationOf(host);
  return destinationWords(name, user, port);
}
