/** Our own ssh where it will do, the system's where the user's configuration asks for more. */
import type { HostSlots } from '../model/types.ts';
import type { ConnectionProgress } from './shell/connection.ts';
import type { OpenSsh } from './openssh.ts';
import type { PortableShell, RemoteExit, RemoteProcess } from './shell/shell.ts';
import { isTransientSsh } from './ssh-error.ts';
import type { SshConfiguration } from './ssh-config/configuration.ts';
import type { Ssh2 } from './ssh2/ssh2.ts';

type Own = Pick<Ssh2, 'route' | 'go'>;
type Installed = Pick<OpenSsh, 'start' | 'commandLine' | 'trial'>;

export class AutoShell implements PortableShell {
  readonly #ssh2: Own;
  readonly #openSsh: Installed;
  readonly #configuration: Pick<SshConfiguration, 'general'>;

  constructor(ssh2: Own, openSsh: Installed, configuration: Pick<SshConfiguration, 'general'>) {
    this.#ssh2 = ssh2;
    this.#openSsh = openSsh;
    this.#configuration = configuration;
  }

  async start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
    const route = await this.#ssh2.route(host);
    const { obstacle } = route;
    // Without the program ssh there is nothing to turn to.
    const { settings, error } = await this.#configuration.general;
    const installed = settings.size > 0 || error !== null;
    if (obstacle === null || !installed) return this.#ssh2.go(route, command, making);
    making.remoteShell(`the system's ssh is used, since ${obstacle.what}`);
    return this.#openSsh.start(host, command);
  }

  commandLine(host: HostSlots, command: string): readonly string[] {
    return this.#openSsh.commandLine(host, command);
  }

  trial(host: HostSlots, verbose: boolean): string {
    return this.#openSsh.trial(host, verbose);
  }

  isTransient({ stderr, problem }: RemoteExit): boolean {
    return problem === undefined ? isTransientSsh(stderr) : problem.transient;
  }
}
