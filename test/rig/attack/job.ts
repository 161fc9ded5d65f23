/** A job of the launcher's own code whose agents a test plays; one of them may be hostile. */
import { readCommandLine } from '../../../launcher/cli/read-command-line.ts';
import { jobRequest } from '../../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../../launcher/cli/options.ts';
import { FrameDecoder, encodeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import type { AgentHello } from '../../../control/messages/link.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { OutputChunk } from '../../../launcher/model/event.ts';
import { runJob } from '../../../launcher/job/run.ts';
import type { JobResult } from '../../../launcher/model/types.ts';
import type { ConnectionHandler, StartAgent } from '../../../launcher/remote/shell/connection.ts';
import { ScriptedHost } from '../scripted-host.ts';

/** Where a hostile agent speaks out of place: before its hello, after it, when its ranks run, when they have ended. */
export const moments = ['connecting', 'up', 'running', 'ending'] as const;
export type Moment = (typeof moments)[number];

export interface HostileAgent {
  arrive(bytes: Uint8Array): void;
  hangUp(): void;
  hello(changes: Partial<AgentHello>): void;
}

export interface AttackedJob {
  readonly result: JobResult;
  /** Of all ranks; they have said nothing. */
  readonly output: string;
  /** The host of each agent that was started. */
  readonly started: readonly string[];
}

const HOSTS = ['h1', 'h2'];
const KILLED = 9;

/** Two hosts with a rank each, which end well unless asked to earlier; the agent of h1 is at that moment, once, what `attack` makes of it. */
export async function attackedJob(
  moment: Moment,
  attack: (agent: HostileAgent) => void,
  options: readonly string[] = [],
): Promise<AttackedJob> {
  let output = '';
  const reporter = {
    event: () => undefined,
    async output({ bytes }: OutputChunk) {
      output += Buffer.from(bytes).toString('latin1');
    },
    result: () => Promise.resolve(),
  };
  const argv = ['-H', HOSTS.map((host) => `${host}:1`).join(','), '--stdin', 'none', ...options, 'prog'];
  const { settings, words } = readCommandLine<JobOptionName>(argv, runCommandLine, {});
  const started: string[] = [];
  const agents = new Map<string, PlayedAgent>();
  let isOver = false;
  const startAgent: StartAgent = (host, order, handler) => {
    const agent = new ScriptedHost(host.name);
    const { arrive, hangUp } = linkTo(handler);
    agent.connect(order, { ...handler, frame: (frame) => arrive(encodeFrame(frame)) });
    const misbehave = (now: Moment): void => {
      if (agent.name !== 'h1' || now !== moment || isOver) return;
      isOver = true;
      attack({ arrive, hangUp, hello: (changes) => agent.hello(changes) });
    };
    const allRun = (): boolean => HOSTS.every((name) => agents.get(name)?.runs === true);
    const played = new PlayedAgent(agent, HOSTS.indexOf(host.name), misbehave, allRun);
    agents.set(host.name, played);
    started.push(host.name);
    return { send: (frame) => played.receive(frame), close: () => Promise.resolve() };
  };
  const result = await runJob({ request: jobRequest(settings, words), reporter, startAgent });
  return { result, started, output };
}

/** What comes over a link, up to what breaks it. */
function linkTo(handler: ConnectionHandler): Pick<HostileAgent, 'arrive' | 'hangUp'> {
  const decoder = new FrameDecoder((frame) => handler.frame(frame));
  let isOpen = true;
  const guard = (read: () => void, isEnd: boolean): void => {
    if (!isOpen) return;
    let problem: string | null = null;
    try {
      read();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      problem = error.message;
    }
    if (problem === null && !isEnd) return;
    isOpen = false;
    handler.closed({ problem, failure: null });
  };
  return {
    arrive: (bytes) => guard(() => decoder.push(bytes), false),
    hangUp: () => guard(() => decoder.end(), true),
  };
}

/** Does what agents do, each thing in a tick of its own. */
class PlayedAgent {
  readonly #host: ScriptedHost;
  readonly #rank: number;
  readonly #attack: (moment: Moment) => void;
  readonly #allRun: () => boolean;
  #state: 'waiting' | 'running' | 'exited' = 'waiting';

  constructor(host: ScriptedHost, rank: number, attack: (moment: Moment) => void, allRun: () => boolean) {
    this.#host = host;
    this.#rank = rank;
    this.#attack = attack;
    this.#allRun = allRun;
    setImmediate(() => this.#begin());
  }

  get runs(): boolean {
    return this.#state !== 'waiting';
  }

  receive({ kind }: Frame): void {
    if (kind === FrameKind.order) setImmediate(() => this.#begin());
    else if (kind === FrameKind.start) setImmediate(() => this.#start());
    else if (kind === FrameKind.signal) setImmediate(() => this.#exit(KILLED));
    else if (kind === FrameKind.end)
      setImmediate(() => {
        this.#exit(KILLED);
        this.#attack('ending');
        this.#host.ended();
      });
  }

  #begin(): void {
    this.#state = 'waiting';
    this.#attack('connecting');
    this.#host.hello();
    setImmediate(() => this.#attack('up'));
  }

  #start(): void {
    this.#state = 'running';
    this.#host.spawned(this.#rank);
    this.#attack('running');
    this.#finish();
  }

  /** Once the others run, too. */
  #finish(): void {
    if (this.#allRun()) setImmediate(() => this.#exit(0));
    else if (this.#state === 'running') setImmediate(() => this.#finish());
  }

  #exit(status: number): void {
    if (this.#state !== 'running') return;
    this.#state = 'exited';
    this.#host.exited(this.#rank, status, Date.now());
  }
}
