/** Plans pieces and gives them to Slurm: all that was planned together, or nothing of it. */
import { usageError } from '../../../model/usage-error.ts';
import type { TaskEdit } from '../../model/task.ts';
import { planPieces } from '../plan/pieces.ts';
import { placeOf } from '../plan/refuse.ts';
import { pieceScript } from '../script/script.ts';
import type { BatchState } from '../state/batch-state.ts';
import type { KnownPiece } from '../store/pieces.ts';
import { cancel } from '../tools/control.ts';
import { submitPieces } from './submit-pieces.ts';

export class Submission {
  readonly #state: BatchState;

  constructor(state: BatchState) {
    this.#state = state;
  }

  /** False: of what was planned before, Slurm may have a part. */
  get isNothingPlanned(): boolean {
    return this.#state.pieces.all.every(({ stage }) => stage !== 'planned');
  }

  /** What the user should know of it; empty: all is submitted. */
  get notice(): string {
    const isWhole = this.#state.pieces.all.every(({ stage }) => stage === 'released' || stage === 'dropped');
    const { id } = this.#state.options.directory;
    return isWhole ? '' : `not all of it is submitted: ncclrun batch --resume ${id} goes on`;
  }

  /** Throws a FailureError (usage) for what Slurm cannot do. */
  plan(tasks: ReadonlySet<number>): void {
    const { store, pieces, options } = this.#state;
    const { directory, facts } = options;
    const { spec, tasks: all } = store;
    const { key, maxArraySize } = facts;
    pieces.plan(planPieces({ batch: directory.id, key, maxArraySize, spec, tasks: all, earlier: pieces.all }, tasks));
  }

  /** `isNew`: nobody has submitted any of it before. Rejects with a FailureError (usage) where sbatch refuses any of it. */
  async submit(isNew: boolean): Promise<void> {
    const state = this.#state;
    const { tool, say, pause, directory, facts } = state.options;
    const refusal = await submitPieces(
      {
        tool,
        say,
        pause,
        pieces: state.pieces,
        jobOf: (piece) => state.jobOf(piece),
        isOpen: (task) => state.isOpen(task),
        scriptOf: (piece) =>
          pieceScript(piece, {
            batch: directory.id,
            command: facts.command,
            spec: state.store.spec,
            task: (id) => state.store.task(id),
          }),
      },
      isNew,
    );
    if (refusal === null) return;
    await this.#withdraw(refusal.piece, refusal.sentence);
    throw usageError(
      `sbatch refuses ${placeOf(state.jobOf(refusal.piece), state.store.batch?.file ?? '')}: ${refusal.sentence}`,
      'correct the job, and submit the file again: nothing of it runs',
    );
  }

  async #withdraw(refused: KnownPiece, sentence: string): Promise<void> {
    const state = this.#state;
    const endedAt = state.options.now();
    const open = state.pieces.all.filter(({ stage }) => stage === 'planned' || stage === 'submitted');
    const edits = open.flatMap(({ number, tasks }) =>
      tasks
        .filter(({ task }) => state.isOpen(task))
        .map(({ task }): TaskEdit => {
          const isRefused = number === refused.number;
          const message = isRefused ? `sbatch refused it: ${sentence}` : `sbatch refused ${state.jobOf(refused).name}`;
          return { id: task, change: { state: isRefused ? 'failed' : 'cancelled', endedAt, message } };
        }),
    );
    state.pieces.together(() => {
      state.apply(edits);
      for (const piece of open) state.pieces.dropped(piece);
    });
    await cancel(
      state.options.tool,
      open.flatMap(({ slurmJob }) => (slurmJob === null ? [] : [{ job: slurmJob, index: null }])),
    );
  }
}
