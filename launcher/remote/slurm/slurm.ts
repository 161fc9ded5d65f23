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
import { PlacedLink } from './placed-link.ts';

/** srun ends by itself soon after its tasks; then it is ended. */
const FAREWELL_MS = 3000;
/** It says so of clusters that bind nothing anyway. */
const NOISE = /lacks support for cpu binding/;

interface Step {
  readonly tool: ReturnType<typeof startTool>;
  readonly server: LinkServer;
}

export class SlurmShell implements RemoteShell {
  readonly #hosts: readonly HostSlots[];
  readonly #links: ReadonlyMap<string, PlacedLink>;
  #step: Promise<Step> | null = null;
  #over: RemoteExit | null = null;
  #linksLeft: number;

  /** `hosts`: all that are going to be started on, of one allocation. */
  constructor(hosts: readonly HostSlots[]) {
    this.#hosts = hosts;
    this.#links = new Map(hosts.map(({ name }) => [name, new PlacedLink()]));
    this.#linksLeft = hosts.length;
  }

  async start(
    host: HostSlots,
    _command: string,
    _onWay: (message: string) => void,
    onStep: (step: string) => void,
  ): Promise<RemoteProcess> {
    const link = this.#links.get(host.name);
    if (link === undefined) throw makeTrouble('other', `${host.name} is not of this job step`, null);
    onStep('srun');
    this.#step ??= this.#begin();
    const { tool, server } = await this.#step;
    const exit = this.#exitOf(link, tool, server);
    if (this.#over !== null) link.close();
    if (link.isCalled) onStep(AGENT_START);
    return { link, exit, kill: () => link.close(), letGo: () => link.close() };
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
    const status = waitStatus === null ? null : exitOf(waitStatus).exitCode;
    const said = remarks
      .split('\n')
      .filter((line) => !NOISE.test(line))
      .join('\n');
    this.#over = { status, remarks: said, trouble: this.#trouble(said, status) };
    for (const link of this.#links.values()) if (!link.isCalled) link.close();
  }

  #srun(): ReturnType<typeof startTool> {
    const count = this.#hosts.length;
    const words = [
      'srun',
      '--overlap',
      `--nodes=${count}`,
      `--ntasks=${count}`,
      '--ntasks-per-node=1',
      `--nodelist=${this.#hosts.map(({ name }) => name).join(',')}`,
      '--job-name=ncclrun',
      '--export=ALL',
      '--cpu-bind=none',
      '--kill-on-bad-exit=0', // which ranks end, and when, is ours to say
      '--wait=0',
      '--no-kill',
      '--quiet',
      agentPath,
      INVITED_AGENT,
    ];
    try {
      return startTool(words, []);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
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
    return this.#over ?? { status: 0, remarks: '' };
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
