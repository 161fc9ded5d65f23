/**
 * Serves the bootstrap socket of one host. Engines introduce themselves, join communicators, and gather and send to each other under a key. The
 * agent forwards requests that concern other hosts to the launcher, and the launcher's answers to the engines.
 */
import { FrameKind, MAX_PAYLOAD_BYTES } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { keyName } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';
import {
  decodeBroken,
  decodeCompleted,
  decodeHostPlanPart,
  decodeKeyFailed,
  decodePlanBody,
  decodeRouted,
  tableRows,
} from '../../control/messages/rendezvous-codec.ts';
import { ENDED_CLEANLY, isSplitRound, JOIN_ROUND, POST_ROUND, RANK_GONE } from '../../control/messages/rendezvous.ts';
import { assembleHostPlan } from '../../control/plan/encode.ts';
import { Planner } from '../../control/planner/planner.ts';
import { splitParts } from '../../control/rendezvous/split.ts';
import type { LocalServer, LocalServerEvent, Native } from '../engine/native.ts';
import { AgentMailbox } from './agent-mailbox.ts';
import { Announcement } from './announcement.ts';
import { blameFrame, BlameRecords } from './blame-records.ts';
import type { OwnMachine } from './bootstrap-service.ts';
import { Communicators } from './communicators.ts';
import { Completion } from './completion.ts';
import { Departures } from './departures.ts';
import { EngineChannel } from './engine.ts';
import { EngineRequests } from './engine-requests.ts';
import { Engines } from './engines.ts';
import { FLUSH_AFTER_MS, PendingGathers } from './pending-gathers.ts';
import { ProcessExits } from './process-exits.ts';
import { refusalFrame } from './refusal.ts';
import type { CommunicatorName, LeftBehind, NicPair } from '../../control/messages/hang.ts';
import type { TelemetryPage } from './telemetry.ts';
import type { OwnTables } from './tuning.ts';

interface BootstrapOptions {
  readonly native: Native;
  /** Path of a socket to create, or descriptor of a listening socket. */
  readonly socket: string | number;
  readonly hostIndex: number;
  readonly hostName: string;
  readonly hostCount: number;
  /** Number of ranks of the job on all hosts. */
  readonly rankCount: number;
  /** Number of ranks of the job on this host. */
  readonly localRankCount: number;
  readonly jobId: string;
  readonly epoch: number;
  /** True if this agent plans communicators whose ranks are all on this host. */
  readonly plansLocally: boolean;
  /** Variables of the ranks' environment that the planner reads. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly machine?: OwnMachine;
  readonly tables?: OwnTables;
  sendUp(frame: Frame): void;
  /** Called when the calls of a communicator's ranks differ, before the ranks are told so. */
  onDiffer?(communicator: CommunicatorName, sentence: string): void;
  /** Called when a rank waits for one that has left the communicator. */
  onLeft?(left: LeftBehind): void;
  /** Called when the last connected process is gone. */
  onDeserted?(): void;
}

export class Bootstrap {
  readonly #options: BootstrapOptions;
  readonly #server: LocalServer;
  readonly #channel: EngineChannel;
  readonly #engines: Engines;
  readonly #processExits: ProcessExits;
  readonly #pendingGathers: PendingGathers;
  readonly #communicators: Communicators;
  readonly #blameRecords = new BlameRecords();
  readonly #mailbox: AgentMailbox;
  readonly #completion: Completion;
  readonly #requests: EngineRequests;
  readonly #announcement: Announcement;
  /** What waits until the frames that engines had sent before it have been handled, oldest first. */
  readonly #afterFrames: (() => void)[] = [];
  /** Shared parts of plans, by key, until this host's own part arrives. */
  readonly #planBodies = new Map<string, Uint8Array>();

  /** Throws NativeError if the socket cannot be created. */
  constructor(options: BootstrapOptions) {
    this.#options = options;
    const { native, hostIndex, hostName, hostCount, rankCount, epoch, jobId, machine, tables } = options;
    const planner = new Planner(null, options.environment);
    this.#announcement = new Announcement(
      () => (hostCount > 1 ? (machine?.('host') ?? null) : null), // communicators across hosts run on the host device
      (frame) => options.sendUp(frame),
    );
    const sendUp = (frame: Frame): void => this.#announcement.send(frame);
    this.#server = openServer(options, (event) => this.#event(event));
    const channel = new EngineChannel(native, this.#server);
    this.#channel = channel;
    const welcome = { hostIndex, hostCount, rankCount, epoch, jobId, hostName };
    const engines = new Engines(native, channel, welcome, () => options.onDeserted?.());
    this.#engines = engines;
    this.#processExits = new ProcessExits({
      gone: (engine, exit) => {
        departures.processEnded(engine, exit);
        engines.forget(engine.connection);
      },
      closed: (engine) => departures.connectionClosed(engine),
      isRank: (engine) => engines.isRank(engine),
    });
    const communicators = new Communicators({
      native,
      hostName,
      channel,
      sendUp,
      ended: (key, failure) => mailbox.end(key, failure),
      recordBlame: (jobRank, record, at) => this.#blameRecords.add(jobRank, record, at),
      left: (jobRank, key) => this.#blameRecords.left(jobRank, key),
      differ: (communicator, sentence) => options.onDiffer?.(communicator, sentence),
      leftBehind: (left) => options.onLeft?.(left),
    });
    this.#communicators = communicators;
    const mailbox = new AgentMailbox({ channel, acrossHosts: hostCount > 1, sendUp });
    this.#mailbox = mailbox;
    this.#completion = new Completion({ hostName, rankCount, planner, machine, tables, channel, communicators });
    const pendingGathers = this.#gathers(sendUp);
    this.#pendingGathers = pendingGathers;
    const departures = new Departures({ hostName, communicators, pendingGathers, mailbox });
    const introduced = (): void => void machine?.('cuda'); // reads the GPUs while the engine sets up its connections
    const parts = { channel, engines, communicators, pendingGathers, mailbox, departures };
    this.#requests = new EngineRequests({ ...parts, introduced });
  }

  #gathers(sendUp: (frame: Frame) => void): PendingGathers {
    const { hostIndex, hostName, hostCount, epoch, localRankCount, plansLocally } = this.#options;
    return new PendingGathers({
      hostIndex,
      hostName,
      epoch,
      localRanks: () => localRankCount - this.#processExits.ended,
      flushAfterMs: hostCount === 1 ? FLUSH_AFTER_MS.oneHost : FLUSH_AFTER_MS.severalHosts,
      completesHere: ({ round }) => plansLocally || (round !== JOIN_ROUND && !isSplitRound(round)),
      goneHere: (key) => (plansLocally ? this.#communicators.goneHere(key) : null),
      sendUp,
      complete: (gather, requesters) => this.#completion.complete(gather, requesters),
      refuse: (requesters, failure) => this.#channel.refuseAll(requesters, failure),
    });
  }

  rankSpawned(rank: number, pid: number): void {
    this.#engines.rankSpawned(rank, pid);
  }

  /**
   * The guardian and the engines speak over different sockets, so that an exit may come here before the last frames of the rank, or before
   * those of the rank that made it fail.
   */
  rankEnded(rank: number, exited: Exited, report: () => void): void {
    this.#processExits.endReported(rank);
    this.#afterEngines(() => {
      this.#communicators.rankEnded(rank);
      const cause = this.#blameRecords.causeOf(rank, exited);
      if (cause !== null) this.#announcement.send(blameFrame(rank, cause));
      this.#pendingGathers.flushAll();
      this.#processExits.rankEnded(rank, exited);
      report();
    });
  }

  afterReports(then: () => void): void {
    if (this.#afterFrames.length === 0) then();
    else this.#afterEngines(then);
  }

  /** Handles a rendezvous frame from the launcher and ignores other kinds. Throws ProtocolError if the frame is malformed. */
  receive(frame: Frame): void {
    if (this.#announcement.receive(frame)) return undefined;
    switch (frame.kind) {
      case FrameKind.completed: {
        const { key, table } = decodeCompleted(frame.payload);
        const requesters = this.#pendingGathers.take(key);
        if (!isSplitRound(key.round)) return this.#channel.answerAll(requesters, table);
        return this.#completion.split(splitParts(key, tableRows(table)), requesters, (part, members) =>
          this.#pendingGathers.expect(part.key, members),
        );
      }
      case FrameKind.planBody: {
        const { key, body } = decodePlanBody(frame.payload);
        this.#planBodies.set(keyName(key), body);
        return undefined;
      }
      case FrameKind.hostPlan: {
        const { key, part } = decodeHostPlanPart(frame.payload);
        const body = this.#planBodies.get(keyName(key)) ?? new Uint8Array(0);
        this.#planBodies.delete(keyName(key));
        return this.#completion.begin(key, assembleHostPlan(body, part), this.#pendingGathers.take(key), true);
      }
      case FrameKind.keyFailed: {
        const { key, ...failure } = decodeKeyFailed(frame.payload);
        if (key.round === POST_ROUND) return this.#mailbox.end(key, failure);
        return this.#channel.refuseAll(this.#pendingGathers.take(key), failure);
      }
      case FrameKind.routed:
        return this.#mailbox.arrived(decodeRouted(frame.payload));
      case FrameKind.broken: {
        const { key, rank, ...failure } = decodeBroken(frame.payload);
        const breach = { rank, ...failure, blame: frame.subject };
        if ((frame.flags & RANK_GONE) !== 0) return this.#communicators.goneElsewhere(key, rank, breach);
        this.#mailbox.end(key, failure);
        return this.#communicators.brokenElsewhere(key, breach, (frame.flags & ENDED_CLEANLY) !== 0);
      }
      default:
        return undefined;
    }
  }

  /** Telemetry pages of all engines of this host: the current operation of each, or the last. */
  telemetry(): TelemetryPage[] {
    return this.#engines.telemetry();
  }

  recorders(): Uint8Array[] {
    return this.#engines.recorders();
  }

  nicsBetween(communicator: CommunicatorName, rank: number, peer: number): NicPair | null {
    return this.#communicators.nicsBetween(communicator, rank, peer);
  }

  /** Number of remembered keys and communicators; 0 when the last has ended. */
  get size(): number {
    return this.#pendingGathers.size + this.#communicators.size + this.#planBodies.size;
  }

  close(): void {
    for (const then of this.#afterFrames.splice(0)) queueMicrotask(then); // no frame comes any more
    this.#pendingGathers.close();
    this.#processExits.close();
    this.#communicators.close();
    this.#engines.close();
    this.#options.native.localServerClose(this.#server);
  }

  #afterEngines(then: () => void): void {
    this.#afterFrames.push(then);
    this.#options.native.localServerCatchUp(this.#server);
  }

  #event(event: LocalServerEvent): void {
    switch (event.type) {
      case 'connected':
        return this.#engines.connected(event.connection, event.pid);
      case 'refused':
        return this.#options.sendUp(refusalFrame(event.reason));
      case 'frame':
        return this.#requests.receive(event.connection, event.kind, event.request, event.payload);
      case 'died':
        return this.#died(event.connection);
      case 'closed':
        return this.#closed(event.connection);
      case 'caughtUp':
        return this.#afterFrames.shift()?.();
      default:
        return event satisfies never;
    }
  }

  #died(connection: number): void {
    const engine = this.#engines.get(connection);
    if (engine === undefined) return this.#engines.forget(connection);
    engine.gone = true;
    return this.#processExits.engineDied(engine);
  }

  /** Handles the end of a connection, after which the engine receives no answers. */
  #closed(connection: number): void {
    const engine = this.#engines.get(connection);
    if (engine === undefined) return this.#engines.forget(connection);
    engine.gone = true;
    this.#mailbox.drop(engine);
    return this.#processExits.engineClosed(engine);
  }
}

function openServer({ native, socket }: BootstrapOptions, onEvent: (event: LocalServerEvent) => void): LocalServer {
  return typeof socket === 'string'
    ? native.localServerOpen(socket, MAX_PAYLOAD_BYTES, onEvent)
    : native.localServerAdopt(socket, MAX_PAYLOAD_BYTES, onEvent);
}
