/**
 * The agent: the launcher's hand on one host. It owns a guardian (which owns the ranks) and the ranks' bootstrap socket, and
 * passes frames between them and the launcher. On the launcher's own host it runs inside the launcher, elsewhere in main.ts.
 *
 *            start             end, or the link is gone             no rank is left
 *   ready ──────────► running ──────────────────────────► ending ───────────────────┬─────────────► ended
 *     │                  │                                  │                       └─► writing ──┤
 *     │                  │                                  │                 (the topology file) │
 *     └──────────────────┴──── the guardian is gone ────────┴──► sweeping ────────────────────────┘
 */
import { Lease } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import {
  parseAggregateOrder,
  parseRankPositionsQuery,
  parseReachQuestion,
  parseStart,
} from '../../control/link/validate.ts';
import type { AggregateOrder } from '../../control/messages/aggregator.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { SpawnStep } from '../../control/messages/guardian.ts';
import type { CommunicatorName, LeftBehind } from '../../control/messages/hang.ts';
import type { AgentOrder, AgentReport, AgentStart, Placement } from '../../control/messages/link.ts';
import {
  decodeExited,
  decodeLeaseEnd,
  decodeSignal,
  decodeSpawned,
  encodeLease,
  encodeSpawnFailed,
} from '../../control/messages/payload.ts';
import type { ReachQuestion } from '../../control/messages/reach.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { AgentOptions, AgentState } from './agent-state.ts';
import type { BootstrapService, OwnMachine } from './bootstrap-service.ts';
import { answerClock } from './answer-clock.ts';
import { Aggregators } from './aggregators.ts';
import { takeDistrust } from './distrust.ts';
import { removeByGuardian, startGuardian, type Guardian, type GuardianOptions } from './guardian.ts';
import { HangReporter } from './hang-reporter.ts';
import { configurationNotes } from '../../control/nccl-configuration.ts';
import { agentHello, interfaceWishes } from './hello.ts';
import { findInterfaces, INTERFACE_REMEDY } from '../topology/interfaces.ts';
import { AgentTopology } from './host-topology.ts';
import { childrenNow, killOrphans } from './orphans.ts';
import { endIfStopped } from './own-end.ts';
import { MemoryKills } from './memory-kills.ts';
import { forgetOuterPmi, MpiPrograms } from './mpi-programs.ts';
import { preloadProblem } from './preload.ts';
import { prepareRanks } from './prepare-ranks.ts';
import type { ReachProbe } from './reach.ts';
import { makeRuntimeDirectory } from './runtime-directory.ts';
import { topologyFiles, type TopologyFiles, VariableError } from './topology-files.ts';
import { findTables } from './tuning.ts';
import { RankGpuWatch } from './rank-gpu-watch.ts';
import { answerRecorder } from './recorder.ts';
import { Stacks } from './stacks.ts';
import { messageOf } from '../../control/message-of.ts';

const ENOENT = 2;
/** After the calls of ranks were seen to differ: by then the others have mostly made theirs, too. */
const LATE_CALLS_MS = 60;
const SIGKILL = 9;
/** SIGHUP, SIGINT, SIGTERM. */
const ENDING: ReadonlySet<number> = new Set([1, 2, 15]);
/** Subject of the heartbeat whose echo confirms that the guardian has suspended the ranks. */
const SUSPENDED = 1;
/** A guardian leaves within a moment after it was let go. */
const GOODBYE_MS = 2000;
/** In place of a range of ports. */
const SYSTEM_CHOOSES = { first: 0, last: 0 };

export class Agent {
  readonly #options: AgentOptions;
  readonly #order: AgentOrder;
  readonly #link: Link;
  readonly #keeper: GuardianOptions;
  readonly #guardian: Guardian;
  readonly #guardianLease: Lease;
  readonly #runtimeDirectory: string;
  readonly #rasPort: number;
  #bootstrap: BootstrapService | null = null;
  readonly #topology: AgentTopology;
  #ownChildren: ReadonlySet<number> = new Set();
  readonly #gpus: RankGpuWatch;
  #memoryKills: MemoryKills | null = null;
  #hangs: HangReporter | null = null;
  #reach: ReachProbe | null = null;
  #aggregators: Aggregators | null = null;
  #mpi: MpiPrograms | null = null;
  readonly #stacks: Stacks;
  #state: AgentState = { name: 'ready' };
  #hasLostLauncher = false;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#order = options.order;
    this.#link = options.link;
    const { native } = options;
    const { first, last } = this.#order.portRange ?? SYSTEM_CHOOSES;
    const [masterPort = 0] = native.freePorts(1, first, last);
    const [rasPort = 0] = native.freePorts(1, 0, 0); // NCCL listens there on the loopback interface alone
    this.#rasPort = rasPort;
    this.#send(FrameKind.hello, encodeJson(agentHello(this.#order, masterPort, native)));
    const ignored = options.local ? [] : configurationNotes();
    for (const message of [takeDistrust(), ...ignored]) if (message !== null) this.#report({ type: 'notice', message });
    const report = (one: AgentReport): void => this.#report(one);
    this.#gpus = new RankGpuWatch({ native, order: this.#order, report });
    this.#link.flush(); // the rest is done while it travels
    this.#topology = new AgentTopology(native, (message) => report({ type: 'notice', message }));
    this.#runtimeDirectory = makeRuntimeDirectory(this.#order.jobId);
    const { leaseMs, heartbeatMs } = this.#order;
    this.#keeper = {
      path: options.guardianPath,
      runtimeDirectory: this.#runtimeDirectory,
      leaseMs: options.local ? 0 : leaseMs, // a launcher that is stopped before it has ranks here may go on later
      endsAgent: !options.local,
    };
    this.#stacks = new Stacks({
      sendToGuardian: (frame) => this.#guardian.send(frame),
      sendUp: (frame) => this.#link.send(frame),
      telemetry: () => this.#bootstrap?.telemetry() ?? [],
    });
    forgetOuterPmi();
    this.#guardian = startGuardian(options.native, this.#keeper, this.#socketPath, {
      frame: (frame) => this.#fromGuardian(frame),
      gone: (how) => this.#afterReports(() => void this.#guardianGone(how)),
    });
    if (this.#order.placement !== null) this.#openBootstrap(this.#order.placement);
    if (this.#order.placement !== null) this.#hasInterfaces(this.#order.placement);
    const problem = this.#order.preload ? preloadProblem() : null;
    if (problem !== null) this.#report({ type: 'refusal', ...problem });
    const heartbeat = makeFrame(FrameKind.heartbeat, { subject: ALL_RANKS });
    const sendHeartbeat = (): void => this.#guardian.send(heartbeat);
    this.#guardianLease = new Lease({ heartbeatMs, leaseMs, sendHeartbeat, onSilent: () => this.#guardian.kill() });
  }

  /** Processes a frame of the launcher. @throws ProtocolError for an unexpected one */
  receive(frame: Frame): void {
    switch (frame.kind) {
      case FrameKind.start:
        return this.#start(parseStart(frame.payload));
      case FrameKind.signal:
        // Ranks that are still to start would never get it.
        if (this.#state.name === 'ready' && ENDING.has(decodeSignal(frame.payload))) return this.#end();
        return this.#guardian.send(frame);
      case FrameKind.stdin:
      case FrameKind.outputCredit:
        return this.#guardian.send(frame);
      case FrameKind.completed:
      case FrameKind.keyFailed:
        return this.#mpi?.answered(frame) === true ? undefined : this.#bootstrap?.receive(frame);
      case FrameKind.planBody:
      case FrameKind.hostPlan:
      case FrameKind.routed:
      case FrameKind.broken:
      case FrameKind.machineWanted:
      case FrameKind.machineKnown:
        return this.#bootstrap?.receive(frame);
      case FrameKind.rankPositions: {
        const where = this.#hangs?.rankPositions(parseRankPositionsQuery(frame.payload));
        return where === undefined ? undefined : this.#report({ type: 'rankPositions', where });
      }
      case FrameKind.recorder:
        return answerRecorder(frame, this.#bootstrap?.recorders() ?? [], this.#gpus, (one) => this.#link.send(one));
      case FrameKind.clock:
        return answerClock(frame, this.#link);
      case FrameKind.stacks:
        return this.#stacks.asked(frame);
      case FrameKind.reach:
        void this.#answerReach(parseReachQuestion(frame.payload));
        return undefined;
      case FrameKind.aggregate:
        return void this.#aggregate(parseAggregateOrder(frame.payload));
      case FrameKind.suspend:
        return this.#suspend(frame.flags === 1);
      case FrameKind.end:
        return this.#end();
      default:
        throw new ProtocolError(`a frame of kind ${frame.kind} came from the launcher`);
    }
  }

  /** Called when the launcher is gone, and with it the receiver of the ranks' output. */
  linkClosed(): void {
    if (this.#state.name === 'ready' || this.#state.name === 'running') this.#state = { name: 'ending' };
    if (this.#state.name === 'ending') this.#guardian.close();
  }

  /** The launcher was silent for longer than the lease. */
  launcherSilent(silentMs: number): void {
    if (!this.#options.local)
      process.stderr.write(
        `ncclrun agent: the launcher was silent for ${silentMs} ms; ending the ranks of this host\n`,
      );
    this.#hasLostLauncher = true;
    this.#report({ type: 'launcher-silent', silentMs }); // it may only have been stopped
    this.linkClosed();
  }

  /** It has ranks, or had. */
  get hasStarted(): boolean {
    return this.#state.name !== 'ready';
  }

  /** No rank of its order is left. */
  get hasEnded(): boolean {
    return this.#state.name === 'ended';
  }

  /** It was silent for longer than the lease. */
  get hasLostLauncher(): boolean {
    return this.#hasLostLauncher;
  }

  /** Another order may follow. */
  get staysAfter(): boolean {
    return this.awaitsJobs || (!this.#options.local && this.#order.epoch < this.#order.maxRestarts);
  }

  /** It may be another job's. */
  get awaitsJobs(): boolean {
    return !this.#options.local && this.#order.stays;
  }

  /** The resource manager ends the job: the launcher does it, in order. */
  askToEnd(signal: 'SIGTERM' | 'SIGINT'): void {
    this.#report({ type: 'asked-to-end', signal });
  }

  /** False, and the job ends: other hosts are to reach this one by interfaces that it does not have. */
  #hasInterfaces({ hostCount }: Placement): boolean {
    const message = hostCount === 1 ? null : findInterfaces(interfaceWishes(this.#order)).problem;
    if (message === null) return true;
    this.#report({ type: 'refusal', message, remedy: INTERFACE_REMEDY });
    return false;
  }

  #openBootstrap(placement: Placement): void {
    const { native, order } = this.#options;
    const sendUp = (frame: Frame): void => this.#link.send(frame);
    try {
      const machine: OwnMachine = (device) => this.#topology.machine(device);
      const tables = findTables(
        { ...process.env, ...placement.programs[0]?.environment },
        {
          used: (use) => this.#report({ type: 'tuning', ...use }),
          problem: (message) => this.#report({ type: 'notice', message }),
        },
      );
      const onDiffer = (communicator: CommunicatorName, sentence: string): void => {
        this.#reportCalls(communicator, sentence);
        setTimeout(() => this.#reportCalls(communicator, sentence), LATE_CALLS_MS).unref();
      };
      const onLeft = (left: LeftBehind): void => {
        const where = this.#hangs?.positionsIn(left);
        if (where !== undefined) this.#report({ type: 'left-behind', left, where });
      };
      const socketPath = this.#socketPath;
      const facts = { native, order, placement, socketPath, sendUp, machine, tables, onDiffer, onLeft };
      this.#bootstrap = this.#options.openBootstrap(facts);
    } catch (error) {
      this.#report({ type: 'refusal', message: messageOf(error), remedy: null });
    }
  }

  /** Without an answer the launcher goes on soon. */
  async #answerReach(question: ReachQuestion): Promise<void> {
    try {
      const { ReachProbe } = await import('./reach.ts');
      if (this.#state.name !== 'ready') return;
      this.#reach ??= new ReachProbe(this.#order.jobId, this.#order.hostName, this.#order.portRange);
      this.#report(await this.#reach.answer(question));
    } catch (error) {
      const reason = messageOf(error);
      this.#report({ type: 'notice', message: `does not know by which addresses hosts reach each other: ${reason}` });
    }
  }

  async #aggregate(order: AggregateOrder): Promise<void> {
    if (this.#state.name !== 'ready') return;
    this.#aggregators ??= new Aggregators(this.#options.native, this.#order.portRange, (message) =>
      this.#report({ type: 'notice', message }),
    );
    this.#report(await this.#aggregators.start(order));
  }

  get #socketPath(): string {
    return `${this.#runtimeDirectory}/agent`;
  }

  #start(start: AgentStart): void {
    const placement = start.placement ?? this.#order.placement;
    if (this.#state.name !== 'ready' || placement === null) return;
    if (this.#order.placement === null && !this.#hasInterfaces(placement)) return;
    if (!this.#gpus.take(placement, start.localRanks?.before ?? 0)) return;
    const files = topologyFiles(placement, process.env);
    if (files === null) return this.#startRanks(start, placement);
    void this.#startWithTopology(start, placement, files);
  }

  /** A file that cannot be read ends the job before its ranks have started. */
  async #startWithTopology(start: AgentStart, placement: Placement, files: TopologyFiles): Promise<void> {
    try {
      await this.#topology.use(files, placement, async () => {
        await this.#gpus.ready(placement);
        if (this.#state.name !== 'ready') return false; // the end came meanwhile
        this.#startRanks(start, placement);
        return true;
      });
    } catch (error) {
      const message = messageOf(error);
      this.#report({ type: 'refusal', message, remedy: error instanceof VariableError ? error.remedy : null });
    }
  }

  #startRanks(start: AgentStart, placement: Placement): void {
    if (this.#bootstrap === null) this.#openBootstrap(placement);
    this.#reach?.close();
    this.#state = { name: 'running' };
    this.#ownChildren = childrenNow(this.#options.guardianPath);
    const { spawnOrder, unreadable, notice } = prepareRanks({
      order: this.#order,
      placement,
      start: start.environment,
      localRanks: start.localRanks ?? null,
      agentSocket: this.#socketPath,
      rasPort: this.#rasPort,
      runtimeDirectory: this.#runtimeDirectory,
      local: this.#options.local,
    });
    if (notice !== null) this.#report({ type: 'start-notice', message: notice });
    for (const rank of unreadable) {
      const payload = encodeSpawnFailed({ errno: ENOENT, step: SpawnStep.exec });
      this.#link.send(makeFrame(FrameKind.spawnFailed, { subject: rank, payload }));
    }
    this.#gpus.begin(placement);
    this.#mpi = new MpiPrograms({
      order: this.#order,
      placement,
      send: (frame) => this.#guardian.send(frame),
      sendUp: (frame) => this.#link.send(frame),
      report: (report) => this.#report(report),
      replay: (frame) => this.#fromGuardian(frame),
    });
    this.#guardian.send(makeFrame(FrameKind.spawn, { payload: spawnOrder }));
    setImmediate(() => (this.#memoryKills = new MemoryKills())); // while the guardian starts them
    this.#hangs = new HangReporter({
      hangAfterMs: this.#order.hangAfterMs,
      telemetry: () => this.#bootstrap?.telemetry() ?? [],
      recorders: () => this.#bootstrap?.recorders() ?? [],
      gpuOf: (rank) => this.#gpus.of(rank),
      gpuHealth: () => this.#gpus.health(),
      stalled: () => this.#report({ type: 'stalled' }),
      nicsBetween: (communicator, rank, peer) => this.#bootstrap?.nicsBetween(communicator, rank, peer) ?? null,
    });
  }

  #fromGuardian(frame: Frame): void {
    this.#guardianLease.renew();
    if (this.#mpi?.defers(frame) === true) return undefined;
    switch (frame.kind) {
      case FrameKind.spawned: {
        const { pid } = decodeSpawned(frame.payload);
        this.#mpi?.spawned(frame.subject, pid);
        this.#bootstrap?.rankSpawned(frame.subject, pid);
        this.#gpus.spawned(frame.subject, pid);
        this.#stacks.spawned(frame.subject, pid);
        return this.#link.send(frame);
      }
      case FrameKind.exited:
        return this.#rankEnded(frame);
      case FrameKind.pmi:
        return this.#mpi?.receive(frame);
      case FrameKind.readStack:
        return this.#stacks.read(frame);
      case FrameKind.spawnFailed:
      case FrameKind.output:
      case FrameKind.stdinCredit:
        return this.#link.send(frame);
      case FrameKind.lease: // we were stopped, and with an agent in the launcher so was that
        return this.#options.local ? this.launcherSilent(decodeLeaseEnd(frame.payload)) : undefined;
      case FrameKind.heartbeat:
        return frame.subject === SUSPENDED ? this.#link.send(makeFrame(FrameKind.suspend, { flags: 1 })) : undefined;
      case FrameKind.notice:
        return this.#report({ type: 'notice', message: Buffer.from(frame.payload).toString('utf8') });
      case FrameKind.ended:
        return this.#afterReports(() => void this.#ranksOver());
      default:
        return this.#guardian.kill();
    }
  }

  #rankEnded(frame: Frame): void {
    const { subject: rank, payload } = frame;
    const exited = decodeExited(payload);
    this.#stacks.ended(rank);
    // A shell reports its child's SIGKILL as status 137.
    const killed = exited.signalNumber === SIGKILL || exited.exitCode === 128 + SIGKILL;
    if (killed && this.#state.name === 'running' && this.#memoryKills?.another() === true)
      this.#report({ type: 'out-of-memory', rank });
    if (exited.exitCode !== 0) this.#gpus.failed(rank);
    const report = (): void => {
      const where = exited.exitCode === 0 ? null : (this.#hangs?.positionsOfFailed(rank) ?? null);
      if (where !== null) this.#report({ type: 'last-position', rank, where });
      this.#mpi?.rankEnded(rank, exited);
      this.#link.send(frame);
    };
    if (this.#bootstrap === null) report();
    else this.#bootstrap.rankEnded(rank, exited, report);
  }

  #reportCalls(communicator: CommunicatorName, sentence: string): void {
    const where = this.#hangs?.positionsIn(communicator);
    if (where !== undefined && this.#state.name !== 'ended') this.#report({ type: 'calls-differ', sentence, where });
  }

  /** The launcher learns of every exit before it learns that no rank is left. */
  #afterReports(then: () => void): void {
    if (this.#bootstrap === null) then();
    else this.#bootstrap.afterReports(then);
  }

  /** The guardian ends the ranks and all that descends from them, and sends everything that they wrote. */
  #end(): void {
    if (this.#state.name !== 'ready' && this.#state.name !== 'running') return;
    this.#state = { name: 'ending' };
    this.#guardian.send(makeFrame(FrameKind.end));
  }

  /** Ranks may have ended before their host's topology was written, which takes some 100 ms. */
  async #ranksOver(): Promise<void> {
    const { writing } = this.#topology;
    if (writing === null) return void this.#ended();
    this.#state = { name: 'writing', alone: false };
    const timeout = new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref());
    await Promise.race([writing, timeout]);
    const { alone } = this.#state;
    const goodbye = this.#ended();
    if (alone) await this.#leave(goodbye);
  }

  async #guardianGone(how: string): Promise<void> {
    if (this.#state.name === 'ended') return await this.#leave(this.#state.goodbye);
    if (this.#state.name === 'writing') return void (this.#state = { name: 'writing', alone: true });
    this.#state = { name: 'sweeping' };
    const { killed, survivors } = await killOrphans(this.#order.jobId, this.#ownChildren, this.#options.guardianPath);
    for (const message of survivors) this.#report({ type: 'notice', message });
    const left =
      killed === 0 ? 'no process of the job was left' : `${killed} processes of the job were left and were killed`;
    if (!this.#hasLostLauncher) this.#report({ type: 'guardian-died', message: `the guardian ${how}; ${left}` });
    await this.#leave(this.#ended());
  }

  /** No rank nor anything that descends from one is left on this host; the guardian leaves when we let go of it. */
  #ended(): NodeJS.Timeout {
    // A stopped guardian is first for its warden to end; without it nobody could.
    const goodbye = setTimeout(() => this.#guardian.kill(), this.#keeper.leaseMs + GOODBYE_MS);
    this.#state = { name: 'ended', goodbye };
    endIfStopped(this.#options.native, this.#keeper.leaseMs);
    this.#gpus.stop(); // before another job may be told that they are free
    this.#link.send(makeFrame(FrameKind.ended));
    this.#link.flush(); // the launcher waits for nothing else
    this.#guardianLease.stop();
    this.#guardian.close();
    this.#hangs?.stop();
    this.#stacks.close();
    this.#mpi?.close();
    this.#bootstrap?.close();
    this.#reach?.close();
    this.#aggregators?.close();
    return goodbye;
  }

  async #leave(goodbye: NodeJS.Timeout): Promise<void> {
    clearTimeout(goodbye);
    await this.#aggregators?.ended();
    await removeByGuardian(this.#options.native, this.#keeper); // our own attempt may have failed for want of resources, such as a descriptor
    this.#guardian.release();
    this.#options.onEnded();
  }

  /** An agent in the launcher is about to be stopped with it; any other goes on, and so does its guardian's lease. */
  #suspend(suspended: boolean): void {
    if (!suspended) this.#hangs?.resumed();
    const leaseMs = suspended && this.#options.local ? 0 : this.#order.leaseMs;
    this.#guardian.send(makeFrame(FrameKind.lease, { payload: encodeLease(leaseMs) }));
    if (suspended) this.#guardian.send(makeFrame(FrameKind.heartbeat, { subject: SUSPENDED }));
  }

  #report(report: AgentReport): void {
    this.#send(FrameKind.failure, encodeJson(report));
  }

  #send(kind: FrameKind, payload: Uint8Array): void {
    this.#link.send(makeFrame(kind, { payload }));
  }
}
