/**
 * Gives Slurm what was planned, each piece once. sbatch has no way to say "unless you have it": so every piece has a name of its own and is submitted
 * held, its number is on the disk before the next one is submitted, and all are released at the end. Whoever is killed on the way leaves held jobs,
 * which the next one finds by their names.
 */
import type { JobSpec } from '../../model/spec.ts';
import { dependencyText } from '../plan/waits.ts';
import type { KnownPiece, PieceStore } from '../store/pieces.ts';
import { cancel, release, type Target } from '../tools/control.ts';
import { readQueue } from '../tools/queue.ts';
import { slurmFailure } from '../tools/slurm-failure.ts';
import { submitHeld, type Submission, type Submitted } from '../tools/submit.ts';
import type { Tool } from '../tools/tool.ts';
import { FailureError } from '../../../model/failure-error.ts';

interface SubmissionFacts {
  readonly tool: Tool;
  readonly pieces: PieceStore;
  jobOf(this: void, piece: KnownPiece): JobSpec;
  scriptOf(this: void, piece: KnownPiece): string;
  /** Whether a task has not ended. */
  isOpen(this: void, task: number): boolean;
  say(this: void, text: string): void;
  pause(this: void, milliseconds: number): Promise<void>;
}

interface Refusal {
  readonly piece: KnownPiece;
  /** sbatch's. */
  readonly sentence: string;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;
/** About ten minutes: a slurmctld that starts again takes less. */
const MOST_TRIES = 45;

/** Null: Slurm has all. `isNew`: nobody has submitted any of it before. Throws a FailureError (system) where Slurm does not answer for long. */
export async function submitPieces(facts: SubmissionFacts, isNew: boolean): Promise<Refusal | null> {
  if (!isNew) await adopt(facts);
  for (const { number } of facts.pieces.all.filter(({ stage }) => stage === 'planned')) {
    const piece = facts.pieces.all.find((one) => one.number === number);
    if (piece === undefined) continue;
    if (!piece.tasks.some(({ task }) => facts.isOpen(task))) {
      facts.pieces.dropped(piece);
      continue;
    }
    const answer = await submitOne(facts, piece);
    if (answer.answer === 'refused') return { piece, sentence: answer.sentence };
  }
  await cancelTwins(facts);
  await releaseAll(facts);
  return null;
}

/** Records the numbers of planned pieces that Slurm has already. */
async function adopt({ tool, pieces }: SubmissionFacts): Promise<void> {
  const planned = new Map(pieces.all.filter(({ stage }) => stage === 'planned').map((piece) => [piece.name, piece]));
  if (planned.size === 0) return;
  for (const { name, job } of await readQueue(tool, (one) => planned.has(one))) {
    const piece = planned.get(name);
    if (piece === undefined) continue;
    pieces.submitted(piece.number, job);
    planned.delete(name);
  }
}

async function submitOne(
  facts: SubmissionFacts,
  piece: KnownPiece,
): Promise<Exclude<Submitted, { answer: 'unclear' }>> {
  const submission = submissionOf(facts, piece);
  let pauseMs = FIRST_PAUSE_MS;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await submitHeld(facts.tool, submission);
    if (answer.answer === 'submitted') facts.pieces.submitted(piece.number, answer.job);
    if (answer.answer !== 'unclear') return answer;
    if (attempt === 1) facts.say(`Slurm does not answer (${answer.sentence}): ncclrun goes on trying`);
    if (attempt === MOST_TRIES) throw slurmFailure('sbatch', answer);
    await facts.pause(pauseMs);
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    const job = await found(facts, piece.name);
    if (job === null) continue;
    facts.pieces.submitted(piece.number, job);
    return { answer: 'submitted', job };
  }
}

/** The number of the job that sbatch submitted before its answer was lost; null: none, or Slurm does not answer yet. */
async function found({ tool }: SubmissionFacts, name: string): Promise<number | null> {
  try {
    const [row] = await readQueue(tool, (one) => one === name);
    return row?.job ?? null;
  } catch (error) {
    if (error instanceof FailureError && error.failure.type === 'system') return null;
    throw error;
  }
}

function submissionOf(facts: SubmissionFacts, piece: KnownPiece): Submission {
  const { array } = facts.jobOf(piece);
  const ids = new Map(
    facts.pieces.all.map(({ number, slurmJob, stage }) => [number, stage === 'dropped' ? null : slurmJob]),
  );
  const open = piece.tasks.filter(({ task }) => facts.isOpen(task));
  return {
    name: piece.name,
    indexes: array === null ? null : open.map(({ index }) => index ?? 0),
    maxParallel: array?.maxParallel ?? null,
    dependency: dependencyText(piece.waits, (number) => ids.get(number)?.toString() ?? null),
    script: facts.scriptOf(piece),
  };
}

/** A submission whose answer was lost may have come late. Nothing of it has run: it is held. */
async function cancelTwins({ tool, pieces }: SubmissionFacts): Promise<void> {
  const jobs = new Map(pieces.all.map(({ name, slurmJob }) => [name, slurmJob]));
  const rows = await readQueue(tool, (name) => (jobs.get(name) ?? null) !== null);
  const twins = rows.filter(({ name, job, held }) => held && jobs.get(name) !== job);
  await cancel(tool, targetsOf(twins.map(({ job }) => job)));
}

async function releaseAll({ tool, pieces, jobOf }: SubmissionFacts): Promise<void> {
  const submitted = pieces.all.filter(({ stage }) => stage === 'submitted');
  const free = submitted.filter((piece) => !jobOf(piece).held);
  await release(tool, targetsOf(free.flatMap(({ slurmJob }) => slurmJob ?? [])));
  pieces.together(() => {
    for (const { number } of submitted) pieces.released(number);
  });
}

function targetsOf(jobs: readonly number[]): Target[] {
  return [...new Set(jobs)].map((job) => ({ job, index: null }));
}
