/** A host whose agent a test plays by hand, and a job on such hosts: the launcher's state machines without any process. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentHello, AgentOrder } from '../../control/messages/link.ts';
import { decodeSignal, encodeSpawnFailed } from '../../control/messages/payload.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import type { JobOptionName } from '../../launcher/cli/options.ts';
import { mergeSettings, Settings } from '../../launcher/cli/settings.ts';
import type { JobEvent, OutputChunk } from '../../launcher/model/event.ts';
import { Host } from '../../launcher/job/host.ts';
import { commonOrder, placementsOf } from '../../launcher/job/order.ts';
import { JobClock } from '../../launcher/job/job-clock.ts';
import { PhaseClock } from '../../launcher/job/phase-clock.ts';
import { jobResult } from '../../launcher/job/result.ts';
import type { JobRequest, RankMap } from '../../launcher/model/types.ts';
import { wireJob } from '../../launcher/job/wire-job.ts';
import type { ConnectionHandler, StartAgent } from '../../launcher/remote/shell/connection.ts';
import { hostNamed } from './host-slots.ts';

/** The agent's side: what it was sent, and what it can say. */
export class ScriptedHost {
  readonly name: string;
  readonly sent: Frame[] = [];
  closed = false;
  /** Of each close of its connection: whether the host was lost. */
  readonly closes: boolean[] = [];
  #handler: ConnectionHandler | null = null;
  #order: AgentOrder | null = null;

  constructor(name: string) {
    this.name = name;
  }

  connect(order: AgentOrder, handler: ConnectionHandler): void {
    this.#order = order;
    this.#handler = handler;
  }

  get order(): AgentOrder {
    if (this.#order === null) throw new Error(`${this.name} has no order`);
    return this.#order;
  }

  /** Another order on the same connection. */
  again(order: AgentOrder): void {
    this.#order = order;
  }

  step(step: string): void {
    this.#handler?.step(step);
  }

  /** Names of the signals that the ranks were to get, and 'end'. */
  get asked(): (number | 'end')[] {
    return this.sent
      .filter(({ kind }) => kind === FrameKind.end || kind === FrameKind.signal)
      .map((frame) => (frame.kind === FrameKind.end ? 'end' : decodeSignal(frame.payload)));
  }

  say(kind: FrameKind, subject = 0, payload: Uint8Array = new Uint8Array(0), flags = 0): void {
    this.#handler?.frame(makeFrame(kind, { subject, payload, flags }));
  }

  hello(changes: Partial<AgentHello> = {}): void {
    const { version = '', jobId = '' } = this.#order ?? {};
    const facts = {
      bootId: `boot of ${this.#order?.hostName}`,
      clockId: null,
      pid: 9,
      cores: 4,
      gpus: 0,
      topology: null,
      nodeVersion: 'v24',
      addresses: ['10.0.0.1'],
    };
    const hello = {
      schemaVersion: 1,
      version,
      jobId,
      hostName: this.name,
      nics: [],
      verbs: null,
      launcherAddress: null,
      preflight: {},
      hardware: { processor: null, gpu: null, driver: null },
      time: Date.now(),
      freePort: 1,
      ...facts,
    };
    this.say(FrameKind.hello, 0, encodeJson({ ...hello, ...changes }));
  }

  spawned(rank: number): void {
    this.say(
      FrameKind.spawned,
      rank,
      new ByteWriter()
        .u32(100 + rank)
        .u64(1_000_000)
        .finish(),
    );
  }

  /** `status` as waitpid gives it, `time` in milliseconds since 1970. */
  exited(rank: number, status: number, time = 5): void {
    this.say(
      FrameKind.exited,
      rank,
      new ByteWriter()
        .i32(status)
        .u64(BigInt(time) * 1_000_000n)
        .finish(),
    );
  }

  spawnFailed(rank: number, errno: number): void {
    this.say(FrameKind.spawnFailed, rank, encodeSpawnFailed({ errno, step: 6 }));
  }

  ended(): void {
    this.say(FrameKind.ended);
  }

  lost(problem: string | null): void {
    this.#handler?.closed({ problem, failure: null });
  }
}

const takeAtOnce = (): Promise<void> => Promise.resolve();

const defaults = new Settings<JobOptionName>(mergeSettings(runCommandLine.options, []));
const request: JobRequest = { ...jobRequest(defaults, ['prog']), graceSeconds: 60 };

/** `names.length` hosts with `perHost` ranks each, connecting. Call `spawn` once all have said hello. */
export function scriptedJob(names: readonly string[], perHost: number) {
  const agents = names.map((name) => new ScriptedHost(name));
  const events: JobEvent[] = [];
  const output: OutputChunk[] = [];
  let takeOutput = takeAtOnce;
  const reporter = {
    event: (event: JobEvent) => void events.push(event),
    output(chunk: OutputChunk) {
      output.push(chunk);
      return takeOutput();
    },
    result: () => Promise.resolve(),
  };
  const slots = names.map((name) => hostNamed(name));
  const map: RankMap = {
    hosts: slots,
    ranks: names.flatMap((_, host) =>
      Array.from({ length: perHost }, (_unused, localRank) => ({
        rank: host * perHost + localRank,
        host,
        program: 0,
        localRank,
        localSize: perHost,
        numa: null,
        gpu: null,
      })),
    ),
  };
  const phases = new PhaseClock();
  const parts = { request, reporter, phases, clock: new JobClock(), readsStdin: () => false };
  const { job, policy, verdicts } = wireJob(parts, names.length);
  const common = commonOrder({
    request,
    epoch: 0,
    jobId: 'job1',
    version: '1',
    installation: '/opt/ncclrun',
    hostCount: names.length,
  });
  const program = { argv: ['prog'], workingDirectory: '/', workingDirectoryGiven: true, environment: {} };
  const facts = {
    programs: [program],
    readsStdin: () => false,
    terminal: false,
    mergeStderr: false,
    pmi: 'none' as const,
    isolateGpus: false,
    busyGpus: 'report',
  };
  const placements = placementsOf(map, facts);
  const hosts = slots.map(
    (host, index) =>
      new Host(host, { ...common, hostName: host.name, placement: placements[index] ?? null }, job.handler),
  );
  const startAgent: StartAgent = (host, order, handler) => {
    const agent = agents.find(({ name }) => name === host.name);
    agent?.connect(order, handler);
    return {
      send: (frame) => void agent?.sent.push(frame),
      async close(lost) {
        agent?.closes.push(lost);
        if (agent !== undefined) agent.closed = true;
      },
    };
  };
  job.connect(hosts, [], startAgent);
  const spawn = (): void => {
    const rendezvous = { receive() {}, rankEnded() {}, hostLost() {}, close() {} };
    job.spawn(
      map,
      { ranks: hosts, others: [] },
      hosts.map(() => ({ placement: null, environment: {} })),
      () => rendezvous,
    );
  };
  return {
    job,
    agents,
    events,
    output,
    /** How the reporter takes output from now on. */
    setOutput: (take: () => Promise<void>) => void (takeOutput = take),
    spawn,
    /** Says hello for every host, and starts the ranks. */
    up: async () => {
      for (const agent of agents) agent.hello();
      await job.allUp;
      spawn();
      for (const { rank, host } of map.ranks) agents[host]?.spawned(rank);
    },
    /** Resolves to the result when the job is over. */
    result: async () => {
      await job.over;
      return jobResult({
        jobId: 'job1',
        job,
        map,
        policy,
        phases,
        restarts: 0,
        verdicts: verdicts.all,
        recorder: null,
      });
    },
  };
}

/** Resolves after everything that is due in this iteration of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
