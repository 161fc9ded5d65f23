/** What users ask of tasks in Slurm: on the disk first, then in Slurm. Each begins with a look, and rejects with a FailureError where Slurm does not answer. */
import { hasEnded } from '../../model/states.ts';
import type { Task, TaskEdit } from '../../model/task.ts';
import { selectTasks } from '../../run/select.ts';
import type { Follower } from '../follow/follower.ts';
import { refuseOnSlurm } from '../plan/refuse.ts';
import type { BatchState } from '../state/batch-state.ts';
import type { Submission } from '../submission/submission.ts';
import { cancel, hold, release, type Target } from '../tools/control.ts';

const QUEUED = {
  state: 'queued',
  cancelAsked: false,
  startedAt: null,
  endedAt: null,
  exitCode: null,
  message: '',
} as const;

export class Changes {
  readonly #state: BatchState;
  readonly #follower: Follower;
  readonly #submission: Submission;

  constructor(state: BatchState, follower: Follower, submission: Submission) {
    this.#state = state;
    this.#follower = follower;
    this.#submission = submission;
  }

  /** Returns the number of tasks that had not ended. `words`: which tasks are meant. */
  async cancel(words: string): Promise<number> {
    const open = (await this.#selected(words)).filter(({ state }) => !hasEnded(state));
    const endedAt = this.#state.options.now();
    this.#state.apply(
      open.map(({ id, state }): TaskEdit => {
        return state === 'running'
          ? { id, change: { cancelAsked: true } }
          : { id, change: { state: 'cancelled', endedAt, message: 'cancelled by the user' } };
      }),
    );
    await cancel(this.#state.options.tool, this.#targetsOf(open));
    return open.length;
  }

  /** Returns the number of tasks that are held, or released. */
  async hold(words: string, held: boolean): Promise<number> {
    const [from, to] = held ? (['queued', 'held'] as const) : (['held', 'queued'] as const);
    const tasks = (await this.#selected(words)).filter(({ state }) => state === from);
    this.#state.apply(tasks.map(({ id }) => ({ id, change: { state: to } })));
    await (held ? hold : release)(this.#state.options.tool, this.#targetsOf(tasks));
    return tasks.length;
  }

  /** Ended tasks that did not succeed are submitted again. Returns their number. */
  async rerun(words: string): Promise<number> {
    const state = this.#state;
    const tasks = (await this.#selected(words)).filter((task) => hasEnded(task.state) && task.state !== 'succeeded');
    const isNew = this.#submission.isNothingPlanned;
    const now = state.options.now();
    state.pieces.together(() => {
      state.apply(tasks.map(({ id }) => ({ id, change: { ...QUEUED, queuedAt: now } })));
      const standings = tasks.map(({ id }) => ({ id, ...state.standingOf(state.store.task(id)) }));
      const inVain = standings.filter(({ standing }) => standing === 'impossible');
      state.apply(
        inVain.map(({ id, words: message }) => ({ id, change: { state: 'skipped', endedAt: now, message } })),
      );
      this.#submission.plan(new Set(tasks.map(({ id }) => id).filter((id) => state.isOpen(id))));
    });
    await this.#submission.submit(isNew);
    return tasks.length;
  }

  /** One more job, of JSON as a batch file would have it. Returns the number of its tasks. */
  async add(text: string): Promise<number> {
    const state = this.#state;
    const { jobOf, now, directory } = state.options;
    const { spec } = state.store;
    const more = { ...spec, jobs: [...spec.jobs, jobOf(text, spec)] };
    refuseOnSlurm(more, directory.id);
    await this.#follower.look();
    const isNew = this.#submission.isNothingPlanned;
    let tasks: readonly number[] = [];
    state.pieces.together(() => {
      tasks = state.store.add(more, now());
      state.forgetJobs();
      this.#submission.plan(new Set(tasks));
    });
    await this.#submission.submit(isNew);
    return tasks.length;
  }

  /** As they are now. */
  async #selected(words: string): Promise<readonly Task[]> {
    const { store } = this.#state;
    const ids = selectTasks(store.spec, words);
    await this.#follower.look();
    return ids.map((id) => store.task(id));
  }

  /** Of those that Slurm has. */
  #targetsOf(tasks: readonly Task[]): Target[] {
    const targets = new Map(
      this.#state.pieces.all.flatMap((piece) =>
        piece.tasks.map(({ task, index }) => [task, { job: piece.slurmJob, index }]),
      ),
    );
    return tasks.flatMap(({ id }) => {
      const { job = null, index = null } = targets.get(id) ?? {};
      return job === null ? [] : [{ job, index }];
    });
  }
}
