/**
 * The bootstrap socket of one host: engines introduce themselves, join communicators, gather and send to each other under a key. What
 * concerns other hosts goes to the launcher; what comes back goes to the engines.
 */
import { availableParallelism } from 'node:os';
import { decodeGather, decodeJoin, decodeLeave, decodeSplit } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { isFrameKind } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind, MAX_PAYLOAD_BYTES } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { describeKey, keyName } from '../../control/messages/key.ts';
import type { Key } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';
import { decodePeerInfo } from '../../control/messages/peer-info.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import {
  decodeBroken,
  decodeCompleted,
  decodeHostPlan,
  decodeKeyFailed,
  decodePlanBody,
  decodeRouted,
  encodeCompleted,
  tableRows,
} from '../../control/messages/rendezvous-codec.ts';
import {
  ENDED_CLEANLY,
  isAlone,
  isShrinkRound,
  isSplitRound,
  JOIN_ROUND,
  LeftHow,
  POST_ROUND,
  RANK_GONE,
} from '../../control/messages/rendezvous.ts';
import { assembleHostPlan } from '../../control/plan/encode.ts';
import type { DeviceName } from '../../control/plan/types.ts';
import type { PlannedHost } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { Gathering } from '../../control/rendezvous/collector.ts';
import { describeDesertion, describeRank } from '../../control/rendezvous/failure.ts';
import { planJoined } from '../../control/rendezvous/planning.ts';
import { joinOf, partsOf } from '../../control/rendezvous/split.ts';
import type { Part } from '../../control/rendezvous/split.ts';
import type { LocalServer, LocalServerEvent, Native } from '../engine/native.ts';
import { Announcement } from './announcement.ts';
import type { OwnMachine } from './bootstrap-service.ts';
import { Communicators } from './communicators.ts';
import { ProcessExits } from './process-exits.ts';
import type { ProcessExit } from './process-exits.ts';
import { blamed, EngineChannel } from './engine.ts';
import type { Requester, Engine } from './engine.ts';
import { Engines } from './engines.ts';
import { PendingGathers } from './pending-gathers.ts';
import { blameFrame, BlameRecords } from './blame-records.ts';
import { AgentMailbox } from './agent-mailbox.ts';
import { refusalFrame } from './refusal.ts';
import type { TelemetryPage } from './telemetry.ts';
import type { OwnTables } from './tuning.ts';
import { isInOperation } from './vain-wait.ts';
import { messageOf } from '../../control/message-of.ts';

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

/** Of a table. */
const NO_ROWS = new Uint8Array(4);
const DECODE_CONTRIBUTION = {
  [FrameKind.join]: decodeJoin,
  [FrameKind.gather]: decodeGather,
  [FrameKind.split]: decodeSplit,
} as const;

/** The ranks of several hosts come together at the launcher, so it should hear of them soon; those of one host mostly complete here. */
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
  readonly #planner: Planner;
  readonly #announcement: Announcement;
  /** Shared parts of plans whose own part is still to come. */
  readonly #planBodies = new Map<string, Uint8Array>();

  /** Throws NativeError if the socket cannot be made. */
  constructor(options: BootstrapOptions) {
    this.#options = options;
    this.#planner = new Planner(null, options.environment);
    const { native, hostIndex, hostName, hostCount, rankCount, epoch, jobId, plansLocally } = options;
    // GPUs of several hosts are not connected yet.
    const machine = hostCount > 1 ? options.machine : undefined;
    this.#announcement = new Announcement(
      () => machine?.('host') ?? null,
      (frame) => options.sendUp(frame),
    );
    const sendUp = (frame: Frame): void => this.#announcement.send(frame);
    const onEvent = (event: LocalServerEvent): void => this.#event(event);
    this.#server =
      typeof options.socket === 'string'
        ? native.localServerOpen(options.socket, MAX_PAYLOAD_BYTES, onEvent)
        : native.localServerAdopt(options.socket, MAX_PAYLOAD_BYTES, onEvent);
    this.#channel = new EngineChannel(native, this.#server);
    const welcome = { hostIndex, hostCount, rankCount, epoch, jobId, hostName };
    this.#engines = new Engines(native, this.#channel, welcome, () => options.onDeserted?.());
    this.#processExits = new ProcessExits(
      (engine, exit) => this.#gone(engine, exit),
      (engine) => this.#deaf(engine),
      (engine) => this.#engines.isRank(engine),
    );
    this.#communicators = new Communicators({
      native,
      hostName,
      channel: this.#channel,
      sendUp,
      ended: (key, failure) => this.#mailbox.end(key, failure),
      recordBlame: (jobRank, record, at) => this.#blameRecords.add(jobRank, record, at),
      left: (jobRank, key) => this.#blameRecords.left(jobRank, key),
    });
    this.#mailbox = new AgentMailbox({ channel: this.#channel, acrossHosts: hostCount > 1, sendUp });
    this.#pendingGathers = new PendingGathers({
      hostIndex,
      hostName,
      epoch,
      localRanks: () => options.localRankCount - this.#processExits.ended,
      flushAfterMs: hostCount === 1 ? FLUSH_AFTER_MS.oneHost : FLUSH_AFTER_MS.severalHosts,
      completesHere: ({ round }) => plansLocally || (round !== JOIN_ROUND && !isSplitRound(round)),
      goneHere: (key) => (plansLocally ? this.#communicators.goneHere(key) : null),
      sendUp,
      complete: (gathering, requesters) => this.#complete(gathering, requesters),
      refuse: (requesters, failure) => this.#channel.refuseAll(requesters, failure),
    });
  }

  rankSpawned(rank: number, pid: number): void {
    this.#engines.rankSpawned(rank, pid);
  }

  /** Call it before the launcher is told: who waits for the rank must be known there, and whose fault its failure is. */
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
        return this.#split(partsOf(key, tableRows(table)), requesters, (part, members) =>
          this.#pendingGathers.expect(part.key, members),
        );
      }
      case FrameKind.planBody: {
        const { key, body } = decodePlanBody(frame.payload);
        this.#planBodies.set(keyName(key), body);
        return undefined;
      }
      case FrameKind.hostPlan: {
        const { key, part } = decodeHostPlan(frame.payload);
        const body = this.#planBodies.get(keyName(key)) ?? new Uint8Array(0);
        this.#planBodies.delete(keyName(key));
        return this.#begin(key, assembleHostPlan(body, part), this.#pendingGathers.take(key), true);
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
        return this.#frame(event.connection, event.kind, event.request, event.payload);
      case 'died':
        return this.#died(event.connection);
      case 'closed':
        return this.#closed(event.connection);
      default:
        return event satisfies never;
    }
  }

  #frame(connection: number, kind: number, request: number, payload: Uint8Array): void {
    try {
      if (kind === FrameKind.engineHello) {
        void this.#options.machine?.('cuda'); // is looked for while the engine makes its connections
        return this.#engines.introduce(connection, request, payload);
      }
      const engine = this.#engines.get(connection);
      if (engine === undefined) throw new ProtocolError('the first frame of an engine must be its hello');
      return this.#question(engine, kind, request, payload);
    } catch (error) {
      const { internalError, systemError } = NcclResult;
      const result = error instanceof ProtocolError ? internalError : systemError;
      return this.#channel.refuse(connection, request, result, messageOf(error));
    }
  }

  #question(engine: Engine, kind: number, request: number, payload: Uint8Array): void {
    switch (kind) {
      case FrameKind.join:
      case FrameKind.gather:
      case FrameKind.split: {
        const { rank, ...contribution } = DECODE_CONTRIBUTION[kind](payload);
        const shrinks = isShrinkRound(contribution.key.round);
        const failure = shrinks ? null : this.#communicators.failureOf(contribution.key);
        const requester = { engine, request, rank };
        if (failure !== null) return this.#channel.refuseAll([requester], failure);
        this.#pendingGathers.add(contribution, requester);
        return this.#failDeserted(contribution.key);
      }
      case FrameKind.post:
        return this.#mailbox.post(engine, request, payload);
      case FrameKind.fetch:
        return this.#mailbox.fetch(engine, request, payload);
      case FrameKind.leave:
        return this.#leave(engine, payload);
      case FrameKind.telemetry:
        if (payload.length > 0) throw new ProtocolError('a request for a telemetry page has no payload');
        return this.#engines.morePages(engine, request);
      default:
        throw new ProtocolError(`${isFrameKind(kind) ? 'a frame' : 'an unknown frame'} of kind ${kind} from an engine`);
    }
  }

  #leave(engine: Engine, payload: Uint8Array): void {
    const { key, rank, how, reason } = decodeLeave(payload);
    if (key.round !== JOIN_ROUND)
      return this.#pendingGathers.fail(
        key,
        rank,
        how,
        `${this.#name(rank, engine)} aborted the split${reason === '' ? '' : `: ${reason}`}`,
      );
    if (how === LeftHow.finalized) {
      this.#communicators.finalized(key, rank, engine);
      return this.#pendingGathers.keysOf(key.id, key.epoch).forEach((round) => this.#failDeserted(round));
    }
    if (how === LeftHow.differed) return this.#communicators.differed(key, reason);
    if (how === LeftHow.revoked) return this.#revoked(key, rank, engine, reason);
    if (how === LeftHow.brokenAlone) return this.#communicators.brokenAlone(key, rank, engine, reason);
    const sentence = `${this.#name(rank, engine)} aborted the communicator${reason === '' ? '' : `: ${reason}`}`;
    const blame = how === LeftHow.aborted || how === LeftHow.abortedAlone ? blamed(engine) : ALL_RANKS;
    if (!this.#communicators.departed(key, rank, engine, { how, reason: sentence, cleanly: false, blame })) {
      this.#pendingGathers.fail(key, rank, how, sentence);
    }
    return this.#failRounds(key, rank, how, sentence);
  }

  #revoked(key: Key, rank: number, engine: Engine, reason: string): void {
    const sentence = `${this.#name(rank, engine)} ended the operations of the communicator: ${reason}`;
    this.#communicators.revoked(key, rank, sentence);
    for (const round of this.#pendingGathers.keysOf(key.id, key.epoch))
      if (!isShrinkRound(round.round)) this.#pendingGathers.fail(round, rank, LeftHow.died, sentence);
    this.#mailbox.end(key, { result: NcclResult.remoteError, sentence });
  }

  /** A round of a communicator waits for a rank that is done with it: it will not come. */
  #failDeserted(key: Key): void {
    if (key.round === JOIN_ROUND) return;
    for (const [rank, who] of isSplitRound(key.round) ? this.#communicators.finalizedRanks(key) : []) {
      if (this.#pendingGathers.awaits(key, rank))
        return this.#pendingGathers.fail(key, rank, LeftHow.differed, describeDesertion(who, key));
    }
    for (const [rank, reason] of this.#communicators.departedRanks(key)) {
      if (this.#pendingGathers.awaits(key, rank)) return this.#pendingGathers.fail(key, rank, LeftHow.died, reason);
    }
  }

  #died(connection: number): void {
    const engine = this.#engines.get(connection);
    if (engine === undefined) return this.#engines.forget(connection);
    engine.gone = true;
    return this.#processExits.engineDied(engine);
  }

  /** Nobody hears the answers any more. */
  #closed(connection: number): void {
    const engine = this.#engines.get(connection);
    if (engine === undefined) return this.#engines.forget(connection);
    engine.gone = true;
    this.#mailbox.drop(engine);
    return this.#processExits.engineClosed(engine);
  }

  /** The process lives; what it had asked for it will not learn. */
  #deaf(engine: Engine): void {
    engine.farewell = 'closed its connection to its agent';
    this.#pendingGathers.leave(engine, LeftHow.died, (rank) => this.#farewell(rank, engine));
  }

  #gone(engine: Engine, { phrase, cleanly }: ProcessExit): void {
    engine.farewell = phrase;
    const describe = (rank: number): string => this.#farewell(rank, engine);
    const blame = cleanly === false ? ALL_RANKS : blamed(engine);
    const departure = (rank: number, key: Key) => ({
      reason: describe(rank),
      cleanly: cleanly !== false && !isInOperation(engine.telemetry, key),
      blame,
    });
    this.#mailbox.drop(engine);
    this.#pendingGathers.leave(engine, LeftHow.died, describe);
    for (const { key, rank } of this.#communicators.engineGone(engine, departure)) {
      this.#failRounds(key, rank, LeftHow.died, describe(rank));
    }
    this.#engines.forget(engine.connection);
  }

  /** What still waits under the id of a communicator that lacks a rank. A shrink may have left it out, or have all that it needs of it. */
  #failRounds(key: Key, rank: number, how: LeftHow, reason: string): void {
    for (const round of this.#pendingGathers.keysOf(key.id, key.epoch)) {
      const needed = (!isShrinkRound(round.round) && !isAlone(how)) || this.#pendingGathers.awaits(round, rank);
      if (!this.#pendingGathers.settleGone(round) && needed) this.#pendingGathers.fail(round, rank, how, reason);
    }
    if (!isAlone(how)) this.#mailbox.end(key, { result: NcclResult.remoteError, sentence: reason });
  }

  /** All ranks of a key are here. */
  #complete(gathering: Gathering, requesters: readonly Requester[]): void {
    const { key, size, entries } = gathering;
    if (key.round === JOIN_ROUND) return this.#planHere(gathering, requesters);
    const table = Array.from({ length: size }, (_, rank) => entries.get(rank)?.bytes ?? new Uint8Array(0));
    if (isSplitRound(key.round)) {
      return this.#split(partsOf(key, table), requesters, (part, members) =>
        this.#planHere(joinOf(part, gathering), members),
      );
    }
    return this.#channel.answerAll(requesters, decodeCompleted(encodeCompleted(key, table)).table);
  }

  /** `make` is to bring the ranks of this host their plan; those without a colour are done. */
  #split(
    parts: readonly Part[],
    requesters: readonly Requester[],
    make: (part: Part, members: readonly Requester[]) => void,
  ): void {
    const left = new Map(requesters.map((requester) => [requester.rank, requester]));
    for (const part of parts) {
      const members = part.ranks.flatMap((old, rank) => {
        const requester = left.get(old);
        left.delete(old);
        return requester === undefined ? [] : [{ ...requester, rank }];
      });
      if (members.length > 0) make(part, members);
    }
    this.#channel.answerAll([...left.values()], NO_ROWS);
  }

  #planHere(gathering: Gathering, requesters: readonly Requester[]): void {
    const refuse = (error: unknown): void => this.#refuseFor(error, requesters);
    try {
      const machine = this.#options.machine?.(deviceOf(gathering)) ?? null;
      const tables = this.#options.tables?.() ?? null;
      if (machine === null && tables === null) return this.#planOn({ machine, tables }, gathering, requesters);
      void Promise.all([machine, tables]).then(
        ([known, measured]) => this.#planOn({ machine: known, tables: measured }, gathering, requesters),
        refuse,
      );
    } catch (error) {
      refuse(error);
    }
  }

  #planOn(
    known: Pick<PlannedHost, 'machine' | 'tables'>,
    gathering: Gathering,
    requesters: readonly Requester[],
  ): void {
    const { hostName, rankCount } = this.#options;
    const { key, size } = gathering;
    try {
      if (this.#communicators.has(key))
        throw new Error(`${describeKey(key)} is still in use: its ranks have not left it`);
      const host = { name: hostName, address: '', cores: availableParallelism(), ...known };
      const { encoded } = planJoined(gathering, () => host, this.#planner, size === rankCount);
      this.#begin(key, assembleHostPlan(encoded.body, encoded.host(0).bytes), requesters, false);
    } catch (error) {
      this.#refuseFor(error, requesters);
    }
  }

  #refuseFor(error: unknown, requesters: readonly Requester[]): void {
    this.#channel.refuseAll(requesters, { result: NcclResult.invalidUsage, sentence: messageOf(error) });
  }

  #begin(key: Key, hostPlan: Uint8Array, requesters: readonly Requester[], wide: boolean): void {
    try {
      this.#communicators.begin(key, hostPlan, requesters, wide);
    } catch (error) {
      const sentence = `${this.#options.hostName}: ${messageOf(error)}`;
      this.#channel.refuseAll(requesters, { result: NcclResult.systemError, sentence });
      this.#communicators.couldNotBegin(key, wide, sentence, requesters[0]?.engine);
    }
    for (const { engine, rank } of requesters) {
      if (engine.farewell === null) continue; // else it went while its plan was under way
      const departure = {
        how: LeftHow.died,
        reason: this.#farewell(rank, engine),
        cleanly: false,
        blame: blamed(engine),
      };
      this.#communicators.departed(key, rank, engine, departure);
    }
  }

  #farewell(rank: number, engine: Engine): string {
    return `${this.#name(rank, engine)} ${engine.farewell ?? 'is gone'}`;
  }

  #name(rank: number, engine: Engine): string {
    return describeRank(rank, this.#options.hostName, engine.pid);
  }
}

/** Of the first rank; a plan is refused where another has another. Throws ProtocolError. */
function deviceOf({ entries }: Gathering): DeviceName {
  const [first] = entries.values();
  return first === undefined ? 'host' : decodePeerInfo(first.bytes, 'facts of a rank').device;
}
