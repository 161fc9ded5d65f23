/**
 * How ranks of this host leave their communicators: by a leave of their engine, by its process's end, or by a connection that it closes. What
 * others wait for them in fails; control/rendezvous/rules.ts has the rules.
 */
import { decodeLeave } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { ALL_RANKS } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { isAlone, isSplitRound, JOIN_ROUND, LeftHow } from '../../control/messages/rendezvous.ts';
import { describeRank } from '../../control/rendezvous/failure.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import { desertion, failsWithCommunicator } from '../../control/rendezvous/rules.ts';
import type { AgentMailbox } from './agent-mailbox.ts';
import type { Communicators } from './communicators.ts';
import { blamed, describeGoodbye } from './engine.ts';
import type { Engine } from './engine.ts';
import type { PendingGathers } from './pending-gathers.ts';
import type { ProcessExit } from './process-exits.ts';
import { isInOperation } from './stall.ts';

interface DeparturesOptions {
  readonly hostName: string;
  readonly communicators: Communicators;
  readonly pendingGathers: PendingGathers;
  readonly mailbox: AgentMailbox;
}

export class Departures {
  readonly #options: DeparturesOptions;

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  /** The engine's leave frame. Throws ProtocolError if it is malformed. */
  leave(engine: Engine, payload: Uint8Array): void {
    const { communicators, pendingGathers } = this.#options;
    const { key, rank, how, reason } = decodeLeave(payload);
    const because = reason === '' ? '' : `: ${reason}`;
    if (key.round !== JOIN_ROUND)
      return pendingGathers.fail(key, rank, how, `${this.#name(rank, engine)} aborted the split${because}`);
    if (how === LeftHow.finalized) {
      communicators.finalized(key, rank, engine);
      return pendingGathers.keysOf(key).forEach((round) => this.failDeserted(round));
    }
    if (how === LeftHow.differed) return communicators.differed(key, reason);
    if (how === LeftHow.revoked) return this.#revoke(key, rank, engine, reason);
    if (how === LeftHow.brokenAlone) return communicators.brokenAlone(key, rank, engine, reason);
    const sentence = `${this.#name(rank, engine)} aborted the communicator${because}`;
    const blame = how === LeftHow.aborted || how === LeftHow.abortedAlone ? blamed(engine) : ALL_RANKS;
    if (!communicators.departed(key, rank, engine, { how, reason: sentence, cleanly: false, blame })) {
      pendingGathers.fail(key, rank, how, sentence);
    }
    return this.#failRounds(key, rank, how, sentence);
  }

  /** The engine's process has ended. */
  processEnded(engine: Engine, { phrase, cleanly }: ProcessExit): void {
    const { communicators, pendingGathers, mailbox } = this.#options;
    engine.goodbye = phrase;
    const describe = (rank: number): string => this.#goodbye(rank, engine);
    const blame = cleanly === false ? ALL_RANKS : blamed(engine);
    const departure = (rank: number, key: Key) => ({
      reason: describe(rank),
      cleanly: cleanly !== false && !isInOperation(engine.telemetry, key),
      blame,
    });
    mailbox.drop(engine);
    pendingGathers.leave(engine, LeftHow.died, describe);
    for (const { key, rank } of communicators.engineGone(engine, departure)) {
      this.#failRounds(key, rank, LeftHow.died, describe(rank));
    }
  }

  /** The engine closed its connection and its process lives on; it cannot get the answers to its requests. */
  connectionClosed(engine: Engine): void {
    engine.goodbye = 'closed its connection to its agent';
    this.#options.pendingGathers.leave(engine, LeftHow.died, (rank) => this.#goodbye(rank, engine));
  }

  /** Fails a round that awaits a rank which has finalized or left its communicator. */
  failDeserted(key: Key): void {
    const { communicators, pendingGathers } = this.#options;
    const finalized = isSplitRound(key.round) ? communicators.finalizedRanks(key) : new Map<number, string>();
    const gone = [
      ...withResult(finalized, NcclResult.invalidUsage),
      ...withResult(communicators.departedRanks(key), NcclResult.remoteError),
    ];
    const deserted = desertion(key, gone, (rank) => pendingGathers.awaits(key, rank));
    if (deserted !== null) pendingGathers.fail(key, deserted.rank, deserted.how, deserted.failure.sentence);
  }

  #revoke(key: Key, rank: number, engine: Engine, reason: string): void {
    const { communicators, pendingGathers, mailbox } = this.#options;
    const sentence = `${this.#name(rank, engine)} ended the operations of the communicator: ${reason}`;
    communicators.revoked(key, rank, sentence);
    for (const round of pendingGathers.keysOf(key))
      if (failsWithCommunicator(round)) pendingGathers.fail(round, rank, LeftHow.died, sentence);
    mailbox.end(key, { result: NcclResult.remoteError, sentence });
  }

  /** Rounds of a communicator that lacks a rank now. A shrink may have left the rank out, or have all that it needs of it. */
  #failRounds(key: Key, rank: number, how: LeftHow, reason: string): void {
    const { pendingGathers, mailbox } = this.#options;
    for (const round of pendingGathers.keysOf(key)) {
      const isNeeded = (failsWithCommunicator(round) && !isAlone(how)) || pendingGathers.awaits(round, rank);
      if (!pendingGathers.settleGone(round) && isNeeded) pendingGathers.fail(round, rank, how, reason);
    }
    if (!isAlone(how)) mailbox.end(key, { result: NcclResult.remoteError, sentence: reason });
  }

  #goodbye(rank: number, engine: Engine): string {
    return describeGoodbye(rank, this.#options.hostName, engine);
  }

  #name(rank: number, engine: Engine): string {
    return describeRank(rank, this.#options.hostName, engine.pid);
  }
}

function withResult(ranks: ReadonlyMap<number, string>, result: NcclResult): (readonly [number, RendezvousFailure])[] {
  return Array.from(ranks, ([rank, sentence]) => [rank, { result, sentence }] as const);
}
