/**
 * Agents of a Slurm job: one srun starts all of them, one on each host, as one step of the job, so that scancel and time limits reach them and
 * their ranks. They call back, since srun mixes what its tasks write.
 */
import { makeFrame, encodeJson } from '../../../control/messages/codec.ts';
import { FrameKind } from '../../../control/messages/frame.ts';
import { LinkServer } from '../../../control/link/link-server.ts';
import { type Invitation, SECRET_BYTES } from '../../../control/link/secret.ts';
import { randomBytes } from '../../../control/random-bytes.ts';
import { exitOf } from '../../../control/messages/payload.ts';
import type { HostSlots } from '../../job/types.ts';
import { agentPath, INVITED_AGENT, localAddresses, startTool } from '../local.ts';
import { AGENT_START, type RemoteExit, type RemoteProcess, type RemoteShell } from '../shell.ts';
import { makeTrouble, type Trouble } from '../trouble.ts';
import { statusByHost, withoutNoise } from './complaint.ts';
import { PlacedLink } from './placed-link.ts';
import { gpusOption } from './step-gpus.ts';
import { messageOf } from '../../../control/message-of.ts';

/** srun ends by itself soon after its tasks, unless a host is lost; then it is ended. */
const FAREWELL_MS = 2000;
/**
 * A task of the step. Where the agent cannot be started it fails, and srun ends the step and says why; else its status is no business of srun,
 * which would end the others. Slurm's signals are the agent's.
 */
const TASK = `trap : TERM INT HUP USR1 USR2; "$0" ${INVITED_AGENT}; status=$?; case $status in 126 | 127) exit $status ;; esac`;
/** By then who is to blame has ended the job. */
const AFTER_BLAME_MS = 100;

/** What srun takes from the job as wishes for each of its tasks, and would give the one task of a host, the agent, no more than that. */
const OF_TASKS = [
  'SLURM_CPUS_PER_TASK',
  'SRUN_CPUS_PER_TASK',
  'SLURM_GPUS_PER_TASK',
  'SLURM_NTASKS_PER_CORE',
  'SLURM_NTASKS_PER_GPU',
  'SLURM_NTASKS_PER_SOCKET',
  'SLURM_EXACT',
  'SLURM_CPU_BIND',
];

interface Step {
  readonly tool: ReturnType<typeof startTool>;
  readonly server: LinkServer;
}

export class SlurmShell implements RemoteShell {
  readonly #hosts: readonly HostSlots[];
  readonly #links: ReadonlyMap<string, PlacedLink>;
  #step: Promise<Step> | null = null;
  readonly #ends = new Map<PlacedLink, RemoteExit>();
  /** Hosts whose agents were wanted. */
  readonly #asked = new Set<string>();
  /** srun has ended, and what it said is told. */
  readonly #blamed = Promise.withResolvers<void>();
  #isOver = false;
  #linksLeft: number;

  /** `hosts`: all that are going to be started on, of one allocation. */
  constructor(hosts: readonly HostSlots[]) {
    this.#hosts = hosts;
    this.#links = new Map(hosts.map(({ name }) => [name, new PlacedLink(() => this.#untilBlamed())]));
    this.#linksLeft = hosts.length;
  }

  async start(
    host: HostSlots,
    command: string,
    onWay: (message: string) => void,
    onStep: (step: string) => void,
  ): Promise<RemoteProcess> {
    const link = this.#links.get(host.name);
    // A spare, or a host whose agent was lost: a step of its own.
    if (link === undefined || this.#asked.has(host.name))
      return new SlurmShell([host]).start(host, command, onWay, onStep);
    this.#asked.add(host.name);
    onStep('srun');
    this.#step ??= this.#begin();
    const { tool, server } = await this.#step;
    const exit = this.#exitOf(link, tool, server);
    if (this.#isOver) link.close();
    if (link.isCalled) onStep(AGENT_START);
    return { link, exit, kill: () => link.abandon(), letGo: () => link.abandon() };
  }

  trial({ name }: Pick<HostSlots, 'name'>): string {
    return `srun --overlap --nodes=1 --ntasks=1 --nodelist=${name} hostname`;
  }

  isTransient(): boolean {
    return false;
  }

  async #begin(): Promise<Step> {
    const secret = randomBytes(SECRET_BYTES);
    const server = await LinkServer.listen({
      secret,
      identities: new Set(this.#links.keys()),
      onLink: (identity, link) => this.#links.get(identity)?.place(link),
    });
    const invitation: Invitation = {
      schemaVersion: 1,
      jobId: process.env['SLURM_JOB_ID'] ?? '',
      secret: secret.toString('base64'),
      addresses: localAddresses(),
      port: server.port,
    };
    const tool = this.#srun();
    tool.open({ frame: () => undefined, closed: () => undefined });
    tool.send(makeFrame(FrameKind.invitation, { payload: encodeJson(invitation) }));
    void this.#watch(tool, server);
    return { tool, server };
  }

  /** When srun is gone, nobody calls any more. */
  async #watch(tool: Step['tool'], server: LinkServer): Promise<void> {
    const { waitStatus, remarks } = await tool.died;
    tool.release();
    server.close();
    this.#isOver = true;
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    const statuses = statusByHost(remarks);
    const said = withoutNoise(remarks);
    const trouble = statuses.size === 0 ? { trouble: this.#trouble(said, status) } : {};
    const uncalled = [...this.#links].filter(([, link]) => !link.isCalled);
    const endOf = ([name, link]: (typeof uncalled)[number]): void => {
      this.#ends.set(link, { status: statuses.get(name) ?? status, remarks: said, ...trouble });
      link.close();
    };
    // Those to blame first: srun has ended the others because of them.
    for (const one of uncalled) if (statuses.has(one[0])) endOf(one);
    setTimeout(() => {
      uncalled.forEach(endOf);
      this.#blamed.resolve();
    }, AFTER_BLAME_MS);
  }

  /** Where a task of another host cannot start, srun ends all of them: who is to blame is known when srun has ended, and told first. */
  #untilBlamed(): Promise<void> | null {
    if ([...this.#links.values()].every((link) => link.isCalled)) return null;
    return Promise.race([this.#blamed.promise, new Promise<void>((resolve) => setTimeout(resolve, FAREWELL_MS))]);
  }

  #srun(): ReturnType<typeof startTool> {
    const count = this.#hosts.length;
    const words = [
      'env',
      ...OF_TASKS.flatMap((name) => ['-u', name]),
      'srun',
      '--overlap',
      `--nodes=${count}`,
      `--ntasks=${count}`,
      '--ntasks-per-node=1',
      `--nodelist=${this.#hosts.map(({ name }) => name).join(',')}`,
      ...gpusOption(process.env),
      '--job-name=ncclrun',
      '--export=ALL',
      '--cpu-bind=none',
      '--kill-on-bad-exit=1',
      '--wait=0',
      '--no-kill',
      '--quiet',
      'sh',
      '-c',
      TASK,
      agentPath,
    ];
    try {
      return startTool(words, []);
    } catch (error) {
      const reason = messageOf(error);
      throw makeTrouble('shell', `srun cannot be started: ${reason}`, 'inside a Slurm job srun must be on the PATH');
    }
  }

  /** A host's end is that of its link; the last one's is srun's. */
  async #exitOf(link: PlacedLink, tool: Step['tool'], server: LinkServer): Promise<RemoteExit> {
    await link.gone;
    this.#linksLeft -= 1;
    if (this.#linksLeft === 0) {
      server.close();
      const patience = setTimeout(() => tool.kill(), FAREWELL_MS);
      await tool.died;
      clearTimeout(patience);
    }
    return this.#ends.get(link) ?? { status: 0, remarks: '' };
  }

  #trouble(remarks: string, status: number | null): Trouble {
    const detail = remarks.trim() || `srun ended with status ${status ?? 'unknown'} and said nothing`;
    return {
      cause: 'shell',
      detail,
      remedy: `try: ${this.trial(this.#hosts[0] ?? { name: 'HOST' })}`,
      transient: false,
    };
  }
}
