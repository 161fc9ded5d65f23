/** What an agent knows of a communicator that ranks of its host take part in. */
import type { Key } from '../../control/messages/key.ts';
import type { LeftHow } from '../../control/messages/rendezvous.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import type { Leavers } from '../../control/rendezvous/leavers.ts';
import type { NativeHandle } from '../engine/native.ts';
import type { Engine } from './engine.ts';

interface Member {
  readonly rank: number;
  readonly engine: Engine;
}

export interface Breach extends RendezvousFailure {
  /** In the communicator. */
  readonly rank: number;
  /** Rank in the job to blame when others fail because of this; ALL_RANKS if none, or if the rank's own exit shows it. */
  readonly blame: number;
}

/** One that ranks of this host take part in. */
export interface Communicator {
  readonly key: Key;
  /** Local ranks that have not left. */
  readonly members: Map<number, Member>;
  /** Local ranks that have finalized it: who they are. */
  readonly finalized: Map<number, string>;
  /** Local ranks that have left it otherwise: how. */
  readonly departed: Map<number, string>;
  /** Ranks, also of other hosts where that matters here, that are gone while others go on. */
  readonly gone: Leavers;
  /** Ranks of this host that the launcher knows to be gone. */
  readonly reportedGone: Set<number>;
  readonly segment: NativeHandle;
  readonly abortOffset: number;
  readonly doorbellOffset: number;
  readonly localRanks: number;
  /** Local ranks that have finalized it, by their ranks in the job. */
  readonly leavers: Map<number, number>;
  /** Ranks that have finalized it and for which others wait. */
  readonly missed: Set<number>;
  /** An engine has seen that calls differ, and nobody knows how. */
  unclear: { readonly reason: string; readonly timeout: NodeJS.Timeout } | null;
  /** Ranks of this host alone that others lost when they ended, before it was known what became of them. */
  readonly suspected: Set<number>;
  /** The launcher knows it; else it lies on this host alone. */
  readonly wide: boolean;
  /** Of one that the launcher knows. */
  readonly plan: Uint8Array | null;
  /** Why it cannot go on. */
  failure: Breach | null;
  /** Its ranks have been notified of `failure`. */
  broken: boolean;
  watch: NodeJS.Timeout | null;
}

/** A rank that left for good before its communicator ended. */
export interface Departure {
  readonly how: LeftHow;
  readonly reason: string;
  /** Its process ended with status 0. */
  readonly cleanly: boolean;
  /** As in Breach. */
  readonly blame: number;
}
