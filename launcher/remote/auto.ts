/** Our own ssh where it will do, the system's where the user's configuration asks for more. */
import type { HostSlots } from '../model/types.ts';
import type { ConnectionProgress } from './shell/connection.ts';
import type { OpenSsh } from './openssh.ts';
import { SSH_FAILED } from './shell/shell.ts';
import type { PortableShell, RemoteExit, RemoteProcess } from './shell/shell.ts';
import { isTransientSsh } from './ssh-error.ts';
import type { SshConfiguration } from './ssh-config/configuration.ts';
import { refuseAtOnce, type Ssh2 } from './ssh2/ssh2.ts';

type Own = Pick<Ssh2, 'route' | 'go'>;
type Installed = Pick<OpenSsh, 'start' | 'commandLine' | 'trial'>;

export class AutoShell implements PortableShell {
  readonly #ssh2: Own;
  readonly #openSsh: Installed;
  readonly #configuration: Pick<SshConfiguration, 'general'>;
  /** Why ours does not serve, by the host's name. */
  readonly #refused = new Map<string, string>();

  constructor(ssh2: Own, openSsh: Installed, configuration: Pick<SshConfiguration, 'general'>) {
    this.#ssh2 = ssh2;
    this.#openSsh = openSsh;
    this.#configuration = configuration;
  }

  async start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
    const refused = this.#refused.get(host.name);
    if (refused !== undefined) return this.#startInstalled(host, command, making, { what: refused, leftOut: [] });
    const route = await this.#ssh2.route(host);
    const { obstacle } = route;
    refuseAtOnce(route);
    // Without the program ssh there is nothing to turn to.
    const { settings, error } = await this.#configuration.general;
    const installed = settings.size > 0 || error !== null;
    if (!installed) return this.#ssh2.go(route, command, making);
    if (obstacle !== null) return this.#startInstalled(host, command, making, obstacle);
    const process = this.#ssh2.go(route, command, making);
    return { ...process, exit: process.exit.then((exit) => this.#orAnother(host, exit)) };
  }

  async #startInstalled(
    host: HostSlots,
    command: string,
    making: ConnectionProgress,
    { what, leftOut = [] }: { readonly what: string; readonly leftOut?: readonly string[] },
  ): Promise<RemoteProcess> {
    making.remoteShell(`the system's ssh is used, since ${what}`);
    const process = await this.#openSsh.start(host, command);
    if (leftOut.length === 0) return process;
    const named = (exit: RemoteExit): RemoteExit =>
      isDenied(exit) ? { ...exit, stderr: [exit.stderr.trimEnd(), ...leftOut].join('\n') } : exit;
    return { ...process, exit: process.exit.then(named) };
  }

  /** Where ours and the host's ssh have nothing in common, the next attempt is the system's. */
  #orAnother(host: HostSlots, exit: RemoteExit): RemoteExit {
    const { problem } = exit;
    if (problem?.isForAnother !== true) return exit;
    this.#refused.set(host.name, `ours has nothing in common with the host's: ${problem.detail}`);
    return { ...exit, problem: { ...problem, transient: true } };
  }

  commandLine(host: HostSlots, command: string): readonly string[] {
    return this.#openSsh.commandLine(host, command);
  }

  trial(host: HostSlots, verbose: boolean): string {
    return this.#openSsh.trial(host, verbose);
  }

  mayFailWith(status: number): boolean {
    return status === SSH_FAILED;
  }

  isTransient({ stderr, problem }: RemoteExit): boolean {
    return problem === undefined ? isTransientSsh(stderr) : problem.transient;
  }
}

function isDenied({ status, stderr }: RemoteExit): boolean {
  return status === SSH_FAILED && /permission denied/i.test(stderr);
}
