/** An agent on another host, over the standard streams of a remote shell's command. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { HostSlots, JobRequest } from '../model/types.ts';
import type { AgentConnection, ConnectionHandler, StartAgent } from './shell/connection.ts';
import { Limiter, MAX_CONNECTING } from './shell/limiter.ts';
import type { PortableShell, RemoteShell } from './shell/shell.ts';
import { lastLine } from './shell/last-line.ts';
import { StartAttempt } from './start-attempt.ts';
import type { AttemptEnd, StartAttemptOptions } from './start-attempt.ts';
import { explainStart } from './start-failure.ts';
import { installedIdentity, type InstallationIdentity } from './staging/identity.ts';
import { BY_SLURM, openRemoteShell } from './remote-shells.ts';

const MAX_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;

const connecting = new Limiter(MAX_CONNECTING);

/** How agents are reached. */
export type RemoteOptions = Pick<JobRequest, 'rsh' | 'stage' | 'radix' | 'portRange'>;

/** The remote shell reads its configuration while the job is still being prepared. */
export async function remoteAgentStarter(
  { rsh, stage, radix, portRange }: RemoteOptions,
  hosts: readonly HostSlots[],
  spares: readonly HostSlots[],
): Promise<StartAgent> {
  const all = [...hosts, ...spares];
  if (all.every(({ simulated }) => simulated === true)) {
    const { SimulatedShell } = await import('./simulated-shell.ts');
    return agentStarterOver(new SimulatedShell(), null);
  }
  const bySlurm = rsh === 'auto' && all.every(({ manager }) => manager === 'slurm');
  const copied = stage ? installedIdentity() : null;
  const direct = await openRemoteShell(bySlurm ? BY_SLURM : rsh, hosts, copied, portRange);
  const shell = radix > 0 && hosts.length > radix ? await treeOf(direct, hosts, radix) : direct;
  return agentStarterOver(shell, bySlurm ? null : copied);
}

/** `identity`: of what a host gets that lacks ncclrun; null: nothing. */
export function agentStarterOver(shell: RemoteShell, identity: InstallationIdentity | null): StartAgent {
  return (host, order, handler) => new RemoteAgent({ shell, identity, host, order, handler });
}

/** Agents start other agents where the shell is a program that every host has. */
async function treeOf(shell: RemoteShell, hosts: readonly HostSlots[], radix: number): Promise<RemoteShell> {
  if (!isPortable(shell)) return shell;
  const { TreeShell } = await import('./tree/tree-shell.ts');
  return new TreeShell(shell, hosts, radix);
}

function isPortable(shell: RemoteShell): shell is PortableShell {
  return 'commandLine' in shell;
}

interface RemoteAgentOptions {
  readonly shell: RemoteShell;
  /** What a host gets that lacks ncclrun; null: nothing. */
  readonly identity: InstallationIdentity | null;
  readonly host: HostSlots;
  readonly order: AgentOrder;
  readonly handler: ConnectionHandler;
}

/** Attempts to start it until an agent speaks, then lasts as long as that one does. */
class RemoteAgent implements AgentConnection {
  readonly #options: StartAttemptOptions;
  readonly #handler: ConnectionHandler;
  readonly #done: Promise<void>;
  readonly #unwanted = Promise.withResolvers<void>();
  #attempt: StartAttempt | null = null;
  #isClosing = false;

  constructor({ order, ...options }: RemoteAgentOptions) {
    const frame = makeFrame(FrameKind.order, { payload: encodeJson(order) });
    this.#options = { ...options, order: frame, terms: order };
    this.#handler = options.handler;
    this.#done = this.#run();
  }

  send(frame: Frame): void {
    this.#attempt?.send(frame);
  }

  async close(lost: boolean): Promise<void> {
    this.#isClosing = true;
    this.#unwanted.resolve();
    this.#attempt?.close(lost);
    await this.#done;
  }

  async #run(): Promise<void> {
    let anew = false;
    for (let number = 1; ; number += 1) {
      const release = await this.#admitted();
      if (release === null) return this.#handler.closed({ problem: null, failure: null });
      this.#attempt = new StartAttempt(this.#options, number, anew, release);
      const end = await this.#attempt.run().finally(release);
      const problem = end.problem ?? lastLine(end.exit.stderr);
      if (this.#isClosing || end.spoke) return this.#handler.closed({ problem, failure: null });
      if (!anew && hasBadCache(end)) {
        anew = true;
        continue;
      }
      const { shell, host } = this.#options;
      if (number === MAX_ATTEMPTS || !shell.isTransient(end.exit)) {
        return this.#handler.closed({ problem, failure: await explainStart(end, host, shell) });
      }
      await pause(number);
    }
  }

  /** A slot among the connections being made, as a function that frees it; null: the agent is not wanted any more. */
  async #admitted(): Promise<(() => void) | null> {
    const { shell, host } = this.#options;
    const slot = shell.admit?.(host, connecting) ?? connecting.enter();
    await Promise.race([slot, this.#unwanted.promise]);
    if (!this.#isClosing) return slot;
    void slot.then((release) => release());
    return null;
  }
}

/** The copy in the host's cache is damaged; another attempt replaces it. */
function hasBadCache({ staging, hung, stall }: AttemptEnd): boolean {
  return staging?.cachedIsBad === true && !hung && stall === null;
}

/** Doubling, with jitter, so that many launchers do not come back at the same moment. */
async function pause(attempt: number): Promise<void> {
  const longest = FIRST_PAUSE_MS * 2 ** attempt;
  await new Promise((resolve) => {
    setTimeout(resolve, longest / 2 + Math.random() * (longest / 2));
  });
}
