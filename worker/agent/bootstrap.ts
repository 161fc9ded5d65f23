/**
 * The bootstrap socket of one host: engines introduce themselves, join communicators, gather and send to each other under a key. What
 * concerns other hosts goes to the launcher; what comes back goes to the engines.
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
import { PendingGathers } from './pending-gathers.ts';
import { ProcessExits } from './process-exits.ts';
import { refusalFrame } from './refusal.ts';
import type { TelemetryPage } from './telemetry.ts';
import type { OwnTables } from './tuning.ts';

interface BootstrapOptions {
  readonly native: Native;
  /** The path of a socket to make, or the descriptor of one that listens. */
  readonly socket: string | number;
  readonly hostIndex: number;
  readonly hostName: string;
  readonly hostCount: number;
  /** Ranks of the job, on all hosts. */
  readonly rankCount: number;
  /** Ranks of the job on this host. */
  readonly localRankCount: number;
  readonly jobId: string;
  readonly epoch: number;
  /** Communicators that lie wholly on this host are planned here. */
  readonly plansLocally: boolean;
  /** The ranks', as far as the planner looks at it. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly machine?: OwnMachine;
  readonly tables?: OwnTables;
  sendUp(frame: Frame): void;
  /** The last process that was connected is gone. */
  onDeserted?(): void;
}

/** The ranks of several hosts come together at the launcher, so it should get contributions soon; those of one host mostly complete here. */
const FLUSH_AFTER_MS = { oneHost: 500, severalHosts: 1 } as const;

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
  /** Shared parts of plans whose own part is still to come. */
  readonly #planBodies = new Map<string, Uint8Array>();

  /** Throws NativeError if the socket cannot be made. */
  constructor(options: BootstrapOptions) {
    this.#options = options;
    const { native, hostIndex, hostName, hostCount, rankCount, epoch, jobId, machine, tables } = options;
    const planner = new Planner(null, options.environment);
    this.#announcement = new Announcement(
      () => (hostCount > 1 ? (machine?.('host') ?? null) : null), // GPUs of several hosts are not connected yet
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
    });
    this.#communicators = communicators;
    const mailbox = new AgentMailbox({ channel, acrossHosts: hostCount > 1, sendUp });
    this.#mailbox = mailbox;
    this.#completion = new Completion({ hostName, rankCount, planner, machine, tables, channel, communicators });
    const pendingGathers = this.#gathers(sendUp);
    this.#pendingGathers = pendingGathers;
    const departures = new Departures({ hostName, communicators, pendingGathers, mailbox });
    const introduced = (): void => void machine?.('cuda'); // is looked for while the engine makes its connections
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
      complete: (gathering, requesters) => this.#completion.complete(gathering, requesters),
      refuse: (requesters, failure) => this.#channel.refuseAll(requesters, failure),
    });
  }

  rankSpawned(rank: number, pid: number): void {
    this.#engines.rankSpawned(rank, pid);
  }

  /** Call it before the exit is reported: the launcher must know who waits for the rank, and whose fault its failure is. */
  rankEnded(rank: number, exited: Exited): void {
    this.#communicators.rankEnded(rank);
    const cause = this.#blameRecords.causeOf(rank, exited);
    if (cause !== null) this.#announcement.send(blameFrame(rank, cause));
    this.#pendingGathers.flushAll();
    this.#processExits.rankEnded(rank, exited);
  }

  /** A rendezvous frame of the launcher; other kinds are ignored. Throws ProtocolError if it is malformed. */
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

  /** What every engine of this host does, or did last. */
  telemetry(): TelemetryPage[] {
    return this.#engines.telemetry();
  }

  /** Keys and communicators that are remembered; 0 when the last has ended. */
  get size(): number {
    return this.#pendingGathers.size + this.#communicators.size + this.#planBodies.size;
  }

  close(): void {
    this.#pendingGathers.close();
    this.#processExits.close();
    this.#communicators.close();
    this.#engines.close();
    this.#options.native.localServerClose(this.#server);
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

  /** No answer can be delivered any more. */
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
