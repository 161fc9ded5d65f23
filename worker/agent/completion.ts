/**
 * What follows when a key has all its ranks: gathers are answered; joins and splits become communicators, each with its plan and its host
 * segment. The planner runs here for communicators that lie on this host alone; the launcher sends the plans of all others.
 */
import { availableParallelism } from 'node:os';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import type { Key } from '../../control/messages/key.ts';
import { decodePeerInfo } from '../../control/messages/peer-info.ts';
import { decodeCompleted, encodeCompleted } from '../../control/messages/rendezvous-codec.ts';
import { isSplitRound, JOIN_ROUND, LeftHow } from '../../control/messages/rendezvous.ts';
import { messageOf } from '../../control/message-of.ts';
import { assembleHostPlan } from '../../control/plan/encode.ts';
import type { DeviceName } from '../../control/plan/types.ts';
import type { PlannedHost } from '../../control/planner/input/input.ts';
import type { Planner } from '../../control/planner/planner.ts';
import type { PendingGather } from '../../control/rendezvous/collector.ts';
import { planJoined } from '../../control/rendezvous/planning.ts';
import { contributionsByRank, inUse } from '../../control/rendezvous/rules.ts';
import { joinOf, splitParts } from '../../control/rendezvous/split.ts';
import type { SplitPart } from '../../control/rendezvous/split.ts';
import type { OwnMachine } from './bootstrap-service.ts';
import type { Communicators } from './communicators.ts';
import { blamed, describeGoodbye } from './engine.ts';
import type { EngineChannel, Requester } from './engine.ts';
import type { OwnTables } from './tuning.ts';

/** A table without rows. */
const NO_ROWS = new Uint8Array(4);

interface CompletionOptions {
  readonly hostName: string;
  /** Ranks of the job, on all hosts. */
  readonly rankCount: number;
  readonly planner: Planner;
  readonly machine: OwnMachine | undefined;
  readonly tables: OwnTables | undefined;
  readonly channel: EngineChannel;
  readonly communicators: Communicators;
}

export class Completion {
  readonly #options: CompletionOptions;

  constructor(options: CompletionOptions) {
    this.#options = options;
  }

  /** All ranks of a key are on this host and have contributed. */
  complete(gather: PendingGather, requesters: readonly Requester[]): void {
    const { key } = gather;
    if (key.round === JOIN_ROUND) return this.#plan(gather, requesters);
    const table = contributionsByRank(gather);
    if (!isSplitRound(key.round))
      return this.#options.channel.answerAll(requesters, decodeCompleted(encodeCompleted(key, table)).table);
    return this.split(splitParts(key, table), requesters, (part, members) => this.#plan(joinOf(part, gather), members));
  }

  /** `make` is to bring the ranks of this host their plan; ranks without a colour get an empty table. */
  split(
    parts: readonly SplitPart[],
    requesters: readonly Requester[],
    make: (part: SplitPart, members: readonly Requester[]) => void,
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
    this.#options.channel.answerAll([...left.values()], NO_ROWS);
  }

  /** `wide`: the communicator has ranks on other hosts. */
  begin(key: Key, hostPlan: Uint8Array, requesters: readonly Requester[], wide: boolean): void {
    const { hostName, channel, communicators } = this.#options;
    try {
      communicators.begin(key, hostPlan, requesters, wide);
    } catch (error) {
      const sentence = `${hostName}: ${messageOf(error)}`;
      channel.refuseAll(requesters, { result: NcclResult.systemError, sentence });
      communicators.couldNotBegin(key, wide, sentence, requesters[0]?.engine);
    }
    for (const { engine, rank } of requesters) {
      if (engine.goodbye === null) continue; // else the engine disconnected before its plan arrived
      const reason = describeGoodbye(rank, hostName, engine);
      communicators.departed(key, rank, engine, { how: LeftHow.died, reason, cleanly: false, blame: blamed(engine) });
    }
  }

  /** Waits for what this host is, where that is not known yet. */
  #plan(gather: PendingGather, requesters: readonly Requester[]): void {
    const refuse = (error: unknown): void => this.#refuse(error, requesters);
    try {
      const machine = this.#options.machine?.(deviceOf(gather)) ?? null;
      const tables = this.#options.tables?.() ?? null;
      if (machine === null && tables === null) return this.#planOn({ machine, tables }, gather, requesters);
      void Promise.all([machine, tables]).then(
        ([known, measured]) => this.#planOn({ machine: known, tables: measured }, gather, requesters),
        refuse,
      );
    } catch (error) {
      refuse(error);
    }
  }

  #planOn(
    known: Pick<PlannedHost, 'machine' | 'tables'>,
    gather: PendingGather,
    requesters: readonly Requester[],
  ): void {
    const { hostName, rankCount, planner, communicators } = this.#options;
    const { key, size } = gather;
    try {
      if (communicators.has(key)) throw new Error(inUse(key));
      const host = { name: hostName, address: '', cores: availableParallelism(), ...known };
      const { encoded } = planJoined(gather, () => host, planner, size === rankCount);
      this.begin(key, assembleHostPlan(encoded.body, encoded.host(0).bytes), requesters, false);
    } catch (error) {
      this.#refuse(error, requesters);
    }
  }

  #refuse(error: unknown, requesters: readonly Requester[]): void {
    this.#options.channel.refuseAll(requesters, { result: NcclResult.invalidUsage, sentence: messageOf(error) });
  }
}

/** Of the first rank; the planner refuses ranks with different ones. Throws ProtocolError. */
function deviceOf({ entries }: PendingGather): DeviceName {
  const [first] = entries.values();
  return first === undefined ? 'host' : decodePeerInfo(first.bytes, 'facts of a rank').device;
}
