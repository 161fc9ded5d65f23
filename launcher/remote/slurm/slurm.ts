/**
 * Agents of a Slurm job: one srun starts all of them, one on each host, as one step of the job, so that scancel and time limits reach them and
 * their ranks. They call back, since srun mixes what its tasks write. Where one cannot start for want of ncclrun, all hosts that lack it get a
 * copy, and the launcher starts the step again: the other agents receive no order before all have connected.
 */
import { encodeJson, makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind } from '../../../control/messages/frame.ts';
import { LinkServer } from '../../../control/link/link-server.ts';
import type { StreamLink } from '../../../control/link/stream-link.ts';
import { SECRET_BYTES, type Invitation } from '../../../control/link/secret.ts';
import { randomBytes } from '../../../control/random-bytes.ts';
import { exitOf } from '../../../control/messages/payload.ts';
import type { PortRange } from '../../../control/port-range.ts';
import type { HostSlots } from '../../model/types.ts';
import type { ConnectionProgress } from '../shell/connection.ts';
import type { AgentFailure } from '../../model/failure.ts';
import { localAddresses } from '../../local/host.ts';
import { AGENT_START, type RemoteExit, type RemoteProcess, type RemoteShell } from '../shell/shell.ts';
import type { InstallationIdentity } from '../staging/identity.ts';
import { ConnectionError, type ConnectionProblem } from '../shell/connection-error.ts';
import { blamedHosts, statusByHost, withoutNoise } from './srun-error.ts';
import { copyToHosts } from './copy.ts';
import { PlacedLink } from './placed-link.ts';
import { startStep, type Tool } from './srun.ts';
import { agentTask, lacksAgent } from './tasks.ts';

/** srun ends by itself soon after its tasks, unless a host is lost; then it is ended. */
const GOODBYE_MS = 2000;
/** By then who is to blame has ended the job. */
const AFTER_BLAME_MS = 100;

interface Step {
  readonly tool: Tool;
  readonly server: LinkServer;
  /** How long srun may take to end by itself. */
  readonly goodbyeMs: number;
}

/** How a step ended, for those whose agents have not called. */
interface StepEnd {
  readonly status: number | null;
  readonly statuses: ReadonlyMap<string, number>;
  readonly stderr: string;
  readonly problem: ConnectionProblem | null;
  /** Why hosts got no copy. */
  readonly failures: ReadonlyMap<string, AgentFailure>;
}

export class SlurmShell implements RemoteShell {
  readonly hasLogin = false;
  readonly #hosts: readonly HostSlots[];
  readonly #identity: InstallationIdentity | null;
  readonly #portRange: PortRange | null;
  readonly #links: ReadonlyMap<string, PlacedLink>;
  /** By the names of the hosts whose agents were wanted. */
  readonly #asked = new Map<string, ConnectionProgress>();
  #begun: Promise<void> | null = null;
  #step: Step | null = null;
  #hasCopied = false;
  readonly #ends = new Map<PlacedLink, RemoteExit>();
  /** Resolves when srun has exited and its messages are reported. */
  readonly #blamed = Promise.withResolvers<void>();
  #isOver = false;
  #linksLeft: number;

  /** `hosts`: all that are going to be started on, of one allocation. `identity`: of what hosts get that lack ncclrun; null: nothing. `portRange`: of ours, which agents call. */
  constructor(hosts: readonly HostSlots[], identity: InstallationIdentity | null, portRange: PortRange | null = null) {
    this.#hosts = hosts;
    this.#identity = identity;
    this.#portRange = portRange;
    this.#links = new Map(hosts.map(({ name }) => [name, new PlacedLink(() => this.#untilBlamed())]));
    this.#linksLeft = hosts.length;
  }

  async start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess> {
    const link = this.#links.get(host.name);
    // A spare, or a host whose agent was lost: a step of its own.
    if (link === undefined || this.#asked.has(host.name))
      return new SlurmShell([host], this.#identity, this.#portRange).start(host, command, making);
    this.#asked.set(host.name, making);
    making.step('srun');
    this.#begun ??= this.#begin();
    await this.#begun;
    const exit = this.#exitOf(link);
    if (this.#isOver) link.close();
    if (link.isCalled) making.step(AGENT_START);
    return { link, exit, kill: () => link.abandon(), letGo: () => link.abandon() };
  }

  trial({ name }: Pick<HostSlots, 'name'>): string {
    return `srun --overlap --nodes=1 --ntasks=1 --nodelist=${name} hostname`;
  }

  isTransient(): boolean {
    return false;
  }

  /** @throws ConnectionError if srun cannot be started */
  async #begin(): Promise<void> {
    const secret = randomBytes(SECRET_BYTES);
    const server = await LinkServer.listen({
      secret,
      identities: new Set(this.#links.keys()),
      portRange: this.#portRange,
      onLink: (name, link) => this.#called(name, link),
    });
    const invitation: Invitation = {
      schemaVersion: 1,
      jobId: process.env['SLURM_JOB_ID'] ?? '',
      secret: secret.toString('base64'),
      addresses: localAddresses(),
      port: server.port,
    };
    const tool = startStep({ hosts: this.#hosts, task: agentTask(this.#identity), together: true, input: null });
    tool.open({ frame: () => undefined, closed: () => undefined });
    tool.send(makeFrame(FrameKind.invitation, { payload: encodeJson(invitation) }));
    this.#step = { tool, server, goodbyeMs: GOODBYE_MS };
    void this.#watch(this.#step);
  }

  #called(name: string, link: StreamLink): void {
    this.#links.get(name)?.attach(link);
    this.#asked.get(name)?.step(AGENT_START);
    if (!this.#allCalled) return;
    this.#step?.server.close();
    for (const one of this.#links.values()) one.admit();
  }

  get #allCalled(): boolean {
    return [...this.#links.values()].every((link) => link.isCalled);
  }

  /** When srun is gone, nobody calls any more. */
  async #watch({ tool, server }: Step): Promise<void> {
    const { waitStatus, stderr } = await tool.died;
    tool.release();
    server.close();
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    const statuses = statusByHost(stderr);
    const messages = withoutNoise(stderr);
    const problem = statuses.size === 0 ? this.#problem(messages, status) : null;
    const end: StepEnd = { status, statuses, stderr: messages, problem, failures: new Map() };
    const last = this.#mayCopy(statuses) ? await this.#beginAnew(end) : end;
    if (last !== null) this.#over(last);
  }

  #mayCopy(statuses: ReadonlyMap<string, number>): boolean {
    return this.#identity !== null && !this.#hasCopied && !this.#allCalled && [...statuses.values()].some(lacksAgent);
  }

  /** With copies on all hosts. Null: it is begun. */
  async #beginAnew(end: StepEnd): Promise<StepEnd | null> {
    const identity = this.#identity;
    if (identity === null) return end;
    this.#hasCopied = true;
    for (const link of this.#links.values()) link.forget();
    const lacking = [...end.statuses].filter(([, status]) => lacksAgent(status)).map(([name]) => name);
    try {
      const failures = await copyToHosts({
        hosts: this.#hosts,
        lacking,
        identity,
        onBegin: (tool, bytes) => {
          this.#step = this.#step && { ...this.#step, tool, goodbyeMs: 0 }; // none of its tasks has ranks
          for (const name of lacking) this.#asked.get(name)?.staging(bytes);
        },
      });
      if (failures.size > 0 || this.#linksLeft === 0) return { ...end, failures };
      await this.#begin();
      return null;
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      return { ...end, problem: error.problem };
    }
  }

  #over({ status, statuses, stderr, problem, failures }: StepEnd): void {
    this.#isOver = true;
    const uncalled = [...this.#links].filter(([, link]) => !link.isCalled);
    const endOf = ([name, link]: (typeof uncalled)[number]): void => {
      const failure = failures.get(name);
      this.#ends.set(link, {
        status: statuses.get(name) ?? status,
        stderr,
        ...(problem === null ? {} : { problem }),
        ...(failure === undefined ? {} : { failure }),
      });
      link.close();
    };
    // Those to blame first: srun has ended the others because of them.
    const blamed = failures.size > 0 ? new Set(failures.keys()) : blamedHosts(statuses);
    for (const one of uncalled) if (blamed.has(one[0])) endOf(one);
    setTimeout(() => {
      uncalled.forEach(endOf);
      this.#blamed.resolve();
    }, AFTER_BLAME_MS);
  }

  /**
   * If one task cannot start, srun ends all of them. srun's exit identifies the host to blame, which is reported first. srun may take long to
   * exit, but its message about that task comes soon.
   */
  #untilBlamed(): Promise<void> | null {
    return this.#allCalled || this.#step === null ? null : this.#blame(this.#step);
  }

  async #blame({ tool }: Step): Promise<void> {
    await Promise.race([tool.died, new Promise<void>((resolve) => setTimeout(resolve, GOODBYE_MS).unref())]);
    if (this.#allCalled) return;
    tool.kill();
    const { stderr } = await tool.died;
    if (statusByHost(stderr).size > 0) await this.#blamed.promise;
  }

  /** A host's end is that of its link; the last one's is srun's. */
  async #exitOf(link: PlacedLink): Promise<RemoteExit> {
    await link.gone;
    this.#linksLeft -= 1;
    if (this.#linksLeft === 0 && this.#step !== null) {
      const { tool, server, goodbyeMs } = this.#step;
      server.close();
      const timeout = setTimeout(() => tool.kill(), goodbyeMs);
      await tool.died;
      clearTimeout(timeout);
    }
    return this.#ends.get(link) ?? { status: 0, stderr: '' };
  }

  #problem(stderr: string, status: number | null): ConnectionProblem {
    const detail = stderr.trim() || `srun ended with status ${status ?? 'unknown'} without a message`;
    return {
      cause: 'shell',
      detail,
      remedy: `try: ${this.trial(this.#hosts[0] ?? { name: 'HOST' })}`,
      transient: false,
    };
  }
}
