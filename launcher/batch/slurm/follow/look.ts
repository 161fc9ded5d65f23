/** One look at Slurm: what it says of each task that has not ended, and what is there that should not be. */
import type { AttemptEnd } from '../../attempt/records.ts';
import type { PieceTask } from '../plan/piece.ts';
import type { KnownPiece } from '../store/pieces.ts';
import { readAccounting } from '../tools/accounting.ts';
import type { Target } from '../tools/control.ts';
import { type QueueRow, readQueue } from '../tools/queue.ts';
import type { Tool } from '../tools/tool.ts';
import type { LastAttempt } from './last-attempt.ts';
import { type EndSighting, type Sighting, sightingOf, sightingOfPast } from './sighting.ts';

interface LookFacts {
  readonly tool: Tool;
  readonly pieces: readonly KnownPiece[];
  /** Whether a task has not ended as far as the batch knows. */
  isOpen(this: void, task: number): boolean;
  lastAttempt(this: void, task: number, piece: KnownPiece): LastAttempt;
}

interface Sightings {
  /** By task. */
  readonly found: ReadonlyMap<number, Sighting>;
  /** In Slurm under a name of ours beside the job that the batch knows: a submission whose answer was lost. */
  readonly twins: readonly Target[];
  /** Still to run or running. */
  readonly alive: ReadonlyMap<number, Target>;
}

/** Throws a FailureError (system) where Slurm does not answer: then nothing is known. */
export async function lookAtSlurm(facts: LookFacts): Promise<Sightings> {
  const byName = new Map(facts.pieces.map((piece) => [piece.name, piece]));
  const latest = latestPieces(facts.pieces);
  const rows = await readQueue(facts.tool, (name) => byName.has(name));
  const found = new Map<number, Sighting>();
  const alive = new Map<number, Target>();
  const twins: Target[] = [];
  // Rows of an array's single tasks say more than the row of all others.
  for (const row of rows.toSorted((one, other) => Number(one.index === null) - Number(other.index === null))) {
    const piece = byName.get(row.name);
    if (piece === undefined || piece.slurmJob === null) continue;
    if (piece.slurmJob !== row.job) {
      if (sightingOf(row).kind !== 'ended') twins.push({ job: row.job, index: null });
      continue;
    }
    for (const { task, index } of tasksOf(piece, row)) {
      if (found.has(task) || latest.get(task)?.piece !== piece) continue;
      const sighting = sightingOf(row);
      found.set(task, sighting);
      if (sighting.kind !== 'ended' && row.state !== 'COMPLETING') alive.set(task, { job: row.job, index });
    }
  }
  for (const [task, sighting] of await forgotten(facts, latest, found)) found.set(task, sighting);
  return { found, twins, alive };
}

interface Place {
  readonly piece: KnownPiece;
  readonly index: number | null;
}

/** By task: what runs again has several. */
function latestPieces(pieces: readonly KnownPiece[]): ReadonlyMap<number, Place> {
  return new Map(pieces.flatMap((piece) => piece.tasks.map(({ task, index }) => [task, { piece, index }])));
}

/** Of a row without a number of an array's task: those that are meant by none. */
function tasksOf({ tasks }: KnownPiece, { index }: QueueRow): readonly PieceTask[] {
  return index === null ? tasks : tasks.filter((one) => one.index === index);
}

/** Tasks that squeue has forgotten: their accounting, else their records. */
async function forgotten(
  { tool, isOpen, lastAttempt }: LookFacts,
  latest: ReadonlyMap<number, Place>,
  found: ReadonlyMap<number, Sighting>,
): Promise<Map<number, EndSighting>> {
  const gone = [...latest].filter(([task, { piece }]) => piece.slurmJob !== null && isOpen(task) && !found.has(task));
  if (gone.length === 0) return new Map();
  const past = await readAccounting(tool, [...new Set(gone.flatMap(([, { piece }]) => piece.slurmJob ?? []))]);
  return new Map(
    gone.flatMap(([task, { piece, index }]): [number, EndSighting][] => {
      const { slurmJob } = piece;
      const job = past.get(index === null ? String(slurmJob) : `${slurmJob}_${index}`);
      const { attempt, end } = lastAttempt(task, piece);
      // sacct may still say RUNNING: its daemon hears of an end a moment later.
      const sighting = job === undefined ? byRecord(end) : sightingOfPast(job);
      const restarts = attempt === 0 ? null : attempt - piece.before - 1;
      return sighting === null ? [] : [[task, { ...sighting, restarts }]];
    }),
  );
}

function byRecord(end: AttemptEnd | null): EndSighting {
  const how = end === null ? 'lost' : end.outcome === 'success' ? 'succeeded' : 'failed';
  const exitCode = end?.exitCode ?? null;
  return { kind: 'ended', how, state: 'unknown', exitCode, startedAt: null, endedAt: null, restarts: null, nodes: '' };
}
