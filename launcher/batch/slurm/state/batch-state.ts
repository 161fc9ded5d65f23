/** What a batch on Slurm has come to: its tasks, its pieces, and all that follows from a change of a task. */
import type { BatchSpec, JobSpec } from '../../model/spec.ts';
import { hasEnded } from '../../model/states.ts';
import type { Task, TaskEdit } from '../../model/task.ts';
import { Transitions } from '../../run/transition.ts';
import type { BatchDirectory } from '../../state/directory.ts';
import type { Store } from '../../store/store.ts';
import type { SlurmEvent } from '../event.ts';
import { resultsOf } from '../script/paths.ts';
import type { SlurmFacts } from '../store/facts.ts';
import type { KnownPiece, PieceStore } from '../store/pieces.ts';
import type { Tool } from '../tools/tool.ts';

export interface SlurmBatchOptions {
  readonly directory: BatchDirectory;
  readonly facts: SlurmFacts;
  readonly store: Store;
  readonly pieces: PieceStore;
  readonly tool: Tool;
  /** Milliseconds since 1970. */
  now(this: void): number;
  pause(this: void, milliseconds: number): Promise<void>;
  /** One more job for a batch, of JSON as its file would have it. Throws a FailureError (usage). */
  jobOf(this: void, text: string, spec: BatchSpec): JobSpec;
  emit(this: void, event: SlurmEvent): void;
  say(this: void, text: string): void;
}

export class BatchState {
  readonly options: SlurmBatchOptions;
  readonly store: Store;
  readonly pieces: PieceStore;
  #transitions: Transitions | null = null;

  constructor(options: SlurmBatchOptions) {
    this.options = options;
    this.store = options.store;
    this.pieces = options.pieces;
  }

  /** The batch has other jobs than before. */
  forgetJobs(): void {
    this.#transitions = null;
  }

  isOpen(task: number): boolean {
    return !hasEnded(this.store.task(task).state);
  }

  jobOf({ job }: Pick<KnownPiece, 'job'>): JobSpec {
    const spec = this.store.spec.jobs[job];
    if (spec === undefined) throw new Error(`the batch has no job ${job}`);
    return spec;
  }

  /** Where a piece's attempts keep their records. */
  resultsOf(piece: KnownPiece): string {
    return resultsOf(this.options.directory.id, this.jobOf(piece));
  }

  /** What a waiting task waits for in its own batch. */
  standingOf(task: Task): { readonly standing: string; readonly words: string } {
    return this.#jobs.dependencies.standingOf(task);
  }

  /** Writes down changes with all that follows from them, and tells of them. */
  apply(edits: readonly TaskEdit[]): void {
    if (edits.length === 0) return;
    const before = new Map(edits.map(({ id }) => [id, this.store.task(id)]));
    const { skipped, toCancel } = this.#jobs.apply(edits, this.options.now(), (all) => this.store.edit(all));
    for (const [id, task] of before) this.#tell(task, this.store.task(id));
    for (const id of skipped) this.#tell(this.store.task(id), this.store.task(id));
    this.apply(toCancel.filter((id) => this.isOpen(id)).map((id) => ({ id, change: { cancelAsked: true } })));
  }

  get #jobs(): Transitions {
    this.#transitions ??= new Transitions(this.store.spec, (id) => this.store.task(id));
    return this.#transitions;
  }

  #tell(before: Task, after: Task): void {
    const { id, state, message, attempt } = after;
    const { emit } = this.options;
    if (hasEnded(state)) emit({ type: 'ended', task: id, state, message });
    else if (state === 'running' && (before.state !== 'running' || before.attempt !== attempt))
      emit({ type: 'started', task: id, attempt, nodes: this.pieces.places.get(id) ?? '' });
    else if (state === 'queued' && message !== '' && message !== before.message)
      emit({ type: 'retry', task: id, message });
  }
}
