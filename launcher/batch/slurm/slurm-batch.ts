/**
 * A batch whose tasks Slurm schedules: ncclrun submits them, looks at what has become of them, and passes on what users ask for. It may end at any
 * time; whatever it has decided is on the disk before it tells Slurm, and a look at Slurm mends what was left half done.
 */
import { messageOf } from '../../../control/message-of.ts';
import { FailureError } from '../../model/failure-error.ts';
import { usageError } from '../../model/usage-error.ts';
import { hasEnded } from '../model/states.ts';
import type { BatchAnswer, BatchRequest, BatchStatus } from '../serve/request.ts';
import { Changes } from './change/changes.ts';
import { Follower } from './follow/follower.ts';
import { BatchState, type SlurmBatchOptions } from './state/batch-state.ts';
import { slurmStatusOf } from './status.ts';
import { Submission } from './submission/submission.ts';

export class SlurmBatch {
  readonly #state: BatchState;
  readonly #submission: Submission;
  readonly #follower: Follower;
  readonly #changes: Changes;
  #isSubmitting = false;
  /** What was asked before, one thing after another. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SlurmBatchOptions) {
    this.#state = new BatchState(options);
    this.#submission = new Submission(this.#state);
    this.#follower = new Follower(this.#state);
    this.#changes = new Changes(this.#state, this.#follower, this.#submission);
  }

  get isOver(): boolean {
    return this.#state.store.tasks.every(({ state }) => hasEnded(state));
  }

  /** Plans all tasks; the caller has the batch itself written in the same transaction. Throws a FailureError (usage). */
  plan(): void {
    this.#submission.plan(new Set(this.#state.store.tasks.map(({ id }) => id)));
  }

  /** Slurm has all that was planned when this resolves. Rejects with a FailureError (usage) where sbatch refuses any of it: then it has nothing. */
  async submit(isNew: boolean): Promise<void> {
    this.#isSubmitting = true;
    try {
      await this.#inTurn(() => this.#submission.submit(isNew));
    } finally {
      this.#isSubmitting = false;
    }
  }

  /** Rejects with a FailureError (system) where Slurm does not answer. */
  async look(): Promise<void> {
    await this.#inTurn(() => this.#follower.look());
  }

  /** `watcher`: process that watches the batch. Rejects with a FailureError (usage, system). */
  async answer(request: BatchRequest, watcher: number | null): Promise<BatchAnswer> {
    // A submission of many jobs takes its time.
    if (request.asks === 'status' && this.#isSubmitting)
      return { answer: 'status', status: this.#status(watcher, 'not all of it is submitted yet') };
    return await this.#inTurn(() => this.#answer(request, watcher));
  }

  /** How it is left. */
  close(): BatchStatus {
    const { store, options } = this.#state;
    if (store.batch?.ended_at === null && this.isOver) store.endBatch(options.now());
    const status = this.#status(null, '');
    store.close();
    return status;
  }

  async #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(body);
    this.#turn = turn.catch(() => {});
    return await turn;
  }

  async #answer(request: BatchRequest, watcher: number | null): Promise<BatchAnswer> {
    switch (request.asks) {
      case 'status':
        return { answer: 'status', status: this.#status(watcher, await this.#noticeAfterLook()) };
      case 'cancel':
        return done(await this.#changes.cancel(request.tasks));
      case 'hold':
        return done(await this.#changes.hold(request.tasks, true));
      case 'release':
        return done(await this.#changes.hold(request.tasks, false));
      case 'rerun':
        return done(await this.#changes.rerun(request.tasks));
      case 'submit':
        return done(await this.#changes.add(request.job));
      case 'release-host':
        throw usageError(
          `Slurm decides which hosts of ${this.#state.options.directory.id} get jobs`,
          `its administrator gives ${request.host} jobs again: scontrol update NodeName=${request.host} State=RESUME`,
        );
      default:
        return request satisfies never;
    }
  }

  async #noticeAfterLook(): Promise<string> {
    if (this.isOver || this.#follower.isFresh) return this.#submission.notice;
    try {
      await this.#follower.look();
      return this.#submission.notice;
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      return `${messageOf(error)}; this is what was known before`;
    }
  }

  #status(watcher: number | null, notice: string): BatchStatus {
    const { store, pieces, options } = this.#state;
    return slurmStatusOf({
      directory: options.directory,
      store,
      places: pieces.places,
      watcher,
      notice,
      why: (task) => this.#follower.why(task),
    });
  }
}

function done(tasks: number): BatchAnswer {
  return { answer: 'done', tasks };
}
