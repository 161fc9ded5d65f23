/** Our own ssh, in this process: no process per host, no pauses of Nagle's, the host's key checked as ssh checks it. */
import type { HostSlots } from '../../model/types.ts';
import type { ConnectionProgress } from '../shell/connection.ts';
import { KnownHostsFiles } from '../known-hosts/files.ts';
import { AGENT_START, destinationOf, sshTrial } from '../shell/shell.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from '../shell/shell.ts';
import type { SshConfiguration } from '../ssh-config/configuration.ts';
import { ConnectionError, makeConnectionError } from '../shell/connection-error.ts';
import type { Progress } from './errors.ts';
import { Hop } from './hop.ts';
import { recordsOf } from './host-key.ts';
import { Identities } from './identities.ts';
import { LateLink } from './late-link.ts';
import { SshRoutes } from './route.ts';
import type { Route } from './route.ts';
import type { HopSettings } from './settings.ts';
import { RunningCommand } from './running-command.ts';
import { SharedHops } from './shared-hops.ts';
import { messageOf } from '../../../control/message-of.ts';

/** For people who wait. */
const steps: Readonly<Record<Progress, string>> = {
  connecting: 'ssh connect',
  handshake: 'ssh handshake',
  authentication: 'ssh auth',
  ready: AGENT_START,
};

export class Ssh2 implements RemoteShell {
  readonly #identities = new Identities();
  readonly #knownHosts = new KnownHostsFiles();
  readonly #routes: SshRoutes;
  readonly #shared = new SharedHops();

  constructor(configuration: SshConfiguration) {
    this.#routes = new SshRoutes(configuration, this.#identities, this.#knownHosts);
  }

  route(host: HostSlots): Promise<Route> {
    return this.#routes.to(destinationOf(host));
  }

  async start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
    const route = await this.route(host);
    const { obstacle } = route;
    refuseAtOnce(route);
    if (obstacle?.hard === true)
      throw makeConnectionError('other', `ssh2 cannot go there: ${obstacle.what}`, 'use --rsh openssh, or auto');
    return this.go(route, command, making);
  }

  go(route: Route, command: string, making: Pick<ConnectionProgress, 'step'>): RemoteProcess {
    const link = new LateLink();
    const hop = new Hop(targetOf(route), (progress) => making.step(steps[progress]));
    let killed = false;
    const kill = () => {
      killed = true;
      hop.destroy();
    };
    const exit = this.#run(route, hop, command, link).then(
      (end) => (killed ? { ...end, status: null } : end),
      (error: unknown) => failedExit(error),
    );
    return { link, exit, kill, letGo: kill, loginMs: hop.settings.connectSeconds * 1000 };
  }

  trial(host: HostSlots, verbose: boolean): string {
    return sshTrial(['ssh'], host, verbose);
  }

  /** What is wrong with a connection is a problem. */
  mayFailWith(): boolean {
    return false;
  }

  isTransient({ problem }: RemoteExit): boolean {
    return problem?.transient === true;
  }

  /** From the first packet to the last. @throws ConnectionError where the command was never started */
  async #run(route: Route, hop: Hop, command: string, link: LateLink): Promise<RemoteExit> {
    const know = (settings: HopSettings) => this.#knowledge(settings, route);
    const passage = this.#shared.enter(route.hops.slice(0, -1), know);
    try {
      await hop.open(know(hop.settings), passage);
      const running = await hop.exec(command, (channel) => new RunningCommand(channel, link));
      await Promise.race([running.closed, hop.closed]);
      return hop.silence === null ? running.end : { ...running.end, problem: hop.silence };
    } finally {
      link.abandon();
      hop.end();
      await hop.closed;
      passage?.leave();
    }
  }

  async #knowledge(settings: HopSettings, { orders }: Route) {
    const records = recordsOf(settings, this.#knownHosts);
    return { records, offers: await this.#identities.offers(settings), orders };
  }
}

/** @throws ConnectionError where no ssh can connect */
export function refuseAtOnce({ obstacle }: Route): void {
  if (obstacle?.remedy !== undefined) throw makeConnectionError('other', obstacle.what, obstacle.remedy);
}

function targetOf({ hops }: Route): HopSettings {
  const target = hops.at(-1);
  if (target === undefined) throw new Error('a route has at least one hop');
  return target;
}

function failedExit(error: unknown): RemoteExit {
  const stderr = messageOf(error);
  return { status: null, stderr, ...(error instanceof ConnectionError ? { problem: error.problem } : {}) };
}
