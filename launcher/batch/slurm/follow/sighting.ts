/** What Slurm knows of a task, from its queue or its accounting. */
import type { PastJob } from '../tools/accounting.ts';
import type { QueueRow } from '../tools/queue.ts';

export type Sighting =
  | { readonly kind: 'waiting'; readonly held: boolean; readonly reason: string; readonly restarts: number }
  | { readonly kind: 'running'; readonly restarts: number; readonly startedAt: number | null; readonly nodes: string }
  | EndSighting;

export interface EndSighting {
  readonly kind: 'ended';
  readonly how: 'succeeded' | 'failed' | 'timed-out' | 'out-of-memory' | 'cancelled' | 'lost';
  /** Slurm's word. */
  readonly state: string;
  readonly exitCode: number | null;
  /** Null: it never ran, or Slurm does not say. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Of the attempts that Slurm has started; null: it does not say. */
  readonly restarts: number | null;
  readonly nodes: string;
}

const ends: ReadonlyMap<string, EndSighting['how']> = new Map([
  ['COMPLETED', 'succeeded'],
  ['FAILED', 'failed'],
  ['TIMEOUT', 'timed-out'],
  ['DEADLINE', 'timed-out'],
  ['OUT_OF_MEMORY', 'out-of-memory'],
  ['CANCELLED', 'cancelled'],
  ['NODE_FAIL', 'lost'],
  ['BOOT_FAIL', 'lost'],
  ['PREEMPTED', 'lost'],
  ['REVOKED', 'lost'],
]);

const waits = ['PENDING', 'REQUEUED', 'REQUEUE_FED', 'REQUEUE_HOLD', 'SPECIAL_EXIT', 'RESV_DEL_HOLD'];
const holds = ['REQUEUE_HOLD', 'SPECIAL_EXIT', 'RESV_DEL_HOLD'];

/** What is neither waiting nor at its end runs: Slurm has many words for that, and new ones with its versions. */
export function sightingOf(row: QueueRow): Sighting {
  const { state, restarts, startedAt, endedAt, nodes, reason } = row;
  if (waits.includes(state)) return { kind: 'waiting', held: row.held || holds.includes(state), reason, restarts };
  const how = ends.get(state);
  if (how === undefined) return { kind: 'running', restarts, startedAt, nodes };
  return {
    kind: 'ended',
    how,
    state,
    exitCode: null,
    startedAt: nodes === '' ? null : startedAt,
    endedAt,
    restarts,
    nodes,
  };
}

/** Null: sacct has not heard of its end yet. */
export function sightingOfPast({ state, exitCode, startedAt, endedAt, nodes }: PastJob): EndSighting | null {
  const how = ends.get(state);
  return how === undefined ? null : { kind: 'ended', how, state, exitCode, startedAt, endedAt, restarts: null, nodes };
}
