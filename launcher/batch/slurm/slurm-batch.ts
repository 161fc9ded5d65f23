/**
 * A batch whose tasks Slurm schedules: ncclrun submits them, looks at what has become of them, and passes on what users ask for. It may end at any
 * time; whatever it has decided is on the disk before it tells Slurm, and a look at Slurm mends what was left half done.
 */
import { messageOf } from '../../../control/message-of.ts';
import { FailureError } from '../../model/failure-error.ts';
import { usageError } from '../../model/usage-error.ts';
import type { BatchSpec, JobSpec } from '../model/spec.ts';
import { hasEnded } from '../model/states.ts';
import type { Task, TaskEdit } from '../model/task.ts';
import { selectTasks } from '../run/select.ts';
import { Transitions } from '../run/transition.ts';
import type { BatchAnswer, BatchRequest, BatchStatus } from '../serve/request.ts';
import type { BatchDirectory } from '../state/directory.ts';
import type { Store } from '../store/store.ts';
import type { SlurmEvent } from './event.ts';
import { endIn, hasBegun, lastAttempt } from './follow/last-attempt.ts';
import { lookAtSlurm } from './follow/look.ts';
import { reasonText } from './follow/reason-text.ts';
import type { Sighting } from './follow/sighting.ts';
import { changeAfter, type Look } from './follow/task-change.ts';
import { planPieces } from './plan/pieces.ts';
import { placeOf, refuseOnSlurm } from './plan/refuse.ts';
import { resultsOf } from './script/paths.ts';
import { pieceScript } from './script/script.ts';
import { slurmStatusOf } from './status.ts';
import type { SlurmFacts } from './store/facts.ts';
import type { KnownPiece, PieceStore } from './store/pieces.ts';
import { submitPieces } from './submission/submit-pieces.ts';
import { cancel, hold, release, type Target } from './tools/control.ts';
import type { Tool } from './tools/tool.ts';

interface SlurmBatchOptions {
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

/** A look at Slurm is good for so long where many ask. */
const FRESH_MS = 900;

export class SlurmBatch {
  readonly #options: SlurmBatchOptions;
  readonly #store: Store;
  readonly #pieces: PieceStore;
  #known: Transitions | null = null;
  #sightings: ReadonlyMap<number, Sighting> = new Map();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isSubmitting = false;
  /** What was asked before, one thing after another. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SlurmBatchOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#pieces = options.pieces;
  }

  get isOver(): boolean {
    return this.#store.tasks.every(({ state }) => hasEnded(state));
  }

  /** Plans all tasks; the caller has the batch itself written in the same transaction. Throws a FailureError (usage). */
  plan(): void {
    this.#plan(new Set(this.#store.tasks.map(({ id }) => id)));
  }

  /** Slurm has all that was planned when this resolves. Rejects with a FailureError (usage) where sbatch refuses any of it: then it has nothing. */
  async submit(isNew: boolean): Promise<void> {
    this.#isSubmitting = true;
    try {
      await this.#inTurn(() => this.#submit(isNew));
    } finally {
      this.#isSubmitting = false;
    }
  }

  /** Rejects with a FailureError (system) where Slurm does not answer. */
  async look(): Promise<void> {
    await this.#inTurn(() => this.#look());
  }

  /** Rejects with a FailureError (usage, system). */
  async answer(request: BatchRequest, watcher: number | null): Promise<BatchAnswer> {
    // A submission of many jobs takes its time.
    if (request.asks === 'status' && this.#isSubmitting)
      return { answer: 'status', status: this.#status(watcher, 'not all of it is submitted yet') };
    return await this.#inTurn(() => this.#answer(request, watcher));
  }

  /** How it is left. */
  close(): BatchStatus {
    if (this.#store.batch?.ended_at === null && this.isOver) this.#store.endBatch(this.#options.now());
    const status = this.#status(null, '');
    this.#store.close();
    return status;
  }

  async #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(body);
    this.#turn = turn.catch(() => {});
    return await turn;
  }

  /** Of the jobs that the batch has now. */
  get #transitions(): Transitions {
    this.#known ??= new Transitions(this.#store.spec, (id) => this.#store.task(id));
    return this.#known;
  }

  #plan(ids: ReadonlySet<number>): void {
    const { directory, facts } = this.#options;
    this.#pieces.plan(
      planPieces(
        {
          batch: directory.id,
          key: facts.key,
          maxArraySize: facts.maxArraySize,
          spec: this.#store.spec,
          tasks: this.#store.tasks,
          earlier: this.#pieces.all,
        },
        ids,
      ),
    );
  }

  async #submit(isNew: boolean): Promise<void> {
    const { tool, say, pause, directory, facts } = this.#options;
    const refusal = await submitPieces(
      {
        tool,
        say,
        pause,
        pieces: this.#pieces,
        jobOf: (piece) => this.#jobOf(piece),
        isOpen: (task) => !hasEnded(this.#store.task(task).state),
        scriptOf: (piece) =>
          pieceScript(piece, {
            batch: directory.id,
            command: facts.command,
            spec: this.#store.spec,
            task: (id) => this.#store.task(id),
          }),
      },
      isNew,
    );
    if (refusal === null) return;
    await this.#withdraw(refusal.piece, refusal.sentence);
    throw usageError(
      `sbatch refuses ${placeOf(this.#jobOf(refusal.piece), this.#store.batch?.file ?? '')}: ${refusal.sentence}`,
      'correct the job, and submit the file again: nothing of it runs',
    );
  }

  /** Nothing of what was planned together runs where a part of it was refused. */
  async #withdraw(refused: KnownPiece, sentence: string): Promise<void> {
    const now = this.#options.now();
    const open = this.#pieces.all.filter(({ stage }) => stage === 'planned' || stage === 'submitted');
    const edits = open.flatMap(({ number, tasks }) =>
      tasks
        .filter(({ task }) => !hasEnded(this.#store.task(task).state))
        .map(({ task }): TaskEdit => {
          const isRefused = number === refused.number;
          const message = isRefused ? `sbatch refused it: ${sentence}` : `sbatch refused ${this.#jobOf(refused).name}`;
          return { id: task, change: { state: isRefused ? 'failed' : 'cancelled', endedAt: now, message } };
        }),
    );
    this.#pieces.together(() => {
      this.#transitions.apply(edits, now, (all) => this.#store.edit(all));
      for (const piece of open) this.#pieces.dropped(piece);
    });
    await cancel(
      this.#options.tool,
      open.flatMap(({ slurmJob }) => (slurmJob === null ? [] : [{ job: slurmJob, index: null }])),
    );
  }

  #jobOf({ job }: Pick<KnownPiece, 'job'>): JobSpec {
    const spec = this.#store.spec.jobs[job];
    if (spec === undefined) throw new Error(`the batch has no job ${job}`);
    return spec;
  }

  async #look(): Promise<void> {
    const { tool, now } = this.#options;
    const { found, twins, alive } = await lookAtSlurm({
      tool,
      pieces: this.#pieces.all,
      isOpen: (task) => !hasEnded(this.#store.task(task).state),
      lastAttempt: (task, piece) => lastAttempt(this.#resultsOf(piece), task, piece.before),
    });
    this.#sightings = found;
    this.#lookedAt = now();
    this.#follow(found);
    const unwanted = [...alive].filter(([task]) => this.#isUnwanted(this.#store.task(task)));
    await cancel(tool, [...twins, ...unwanted.map(([, target]) => target)]);
  }

  #isUnwanted({ state, cancelAsked }: Task): boolean {
    return hasEnded(state) || cancelAsked;
  }

  #resultsOf(piece: KnownPiece): string {
    return resultsOf(this.#options.directory.id, this.#jobOf(piece));
  }

  /** Writes down what a look has shown, and all that follows from it. */
  #follow(found: ReadonlyMap<number, Sighting>): void {
    const pieces = new Map(this.#pieces.all.flatMap((piece) => piece.tasks.map(({ task }) => [task, piece])));
    const places = new Map<number, string>();
    const edits: TaskEdit[] = [];
    const later: TaskEdit[] = [];
    for (const [id, sighting] of found) {
      const [task, piece] = [this.#store.task(id), pieces.get(id)];
      if (hasEnded(task.state) || piece === undefined) continue;
      // Until all are submitted, ncclrun itself holds them.
      if (sighting.kind === 'waiting' && piece.stage !== 'released') continue;
      const change = changeAfter(task, {
        sighting,
        before: piece.before,
        now: this.#options.now(),
        ...this.#recordOf(id, piece, sighting),
      });
      if (sighting.kind !== 'waiting' && sighting.nodes !== '') places.set(id, sighting.nodes);
      if (change === null) continue;
      // Slurm cancels what waits in vain; the task that it waits for says why, and may be in the same look.
      const perhapsSkipped = change.state === 'cancelled' && task.attempt === 0 && !task.cancelAsked;
      (perhapsSkipped ? later : edits).push({ id, change });
    }
    if (places.size > 0) this.#pieces.setPlaces(places);
    // A task that runs is not skipped by another's end in the same look.
    const ends = edits.filter(({ change: { state } }) => state !== undefined && hasEnded(state));
    this.#apply(edits.filter((edit) => !ends.includes(edit)));
    this.#apply(ends);
    this.#apply(later.filter(({ id }) => !hasEnded(this.#store.task(id).state)));
  }

  #recordOf(task: number, piece: KnownPiece, sighting: Sighting): Pick<Look, 'end' | 'hasBegun'> {
    if (sighting.kind === 'running' || sighting.restarts === null) return { end: null, hasBegun: false };
    const attempt = piece.before + sighting.restarts + (sighting.kind === 'ended' ? 1 : 0);
    const results = this.#resultsOf(piece);
    return { end: endIn(results, task, attempt), hasBegun: hasBegun(results, task, attempt) };
  }

  #apply(edits: readonly TaskEdit[]): void {
    if (edits.length === 0) return;
    const { now } = this.#options;
    const before = this.#store.tasks;
    const known = new Map(edits.map(({ id }) => [id, this.#store.task(id)]));
    const { skipped, toCancel } = this.#transitions.apply(edits, now(), (all) => this.#store.edit(all));
    for (const id of skipped) known.set(id, before[id] ?? this.#store.task(id));
    for (const [id, task] of known) this.#tell(task, this.#store.task(id));
    const running = toCancel.filter((id) => !hasEnded(this.#store.task(id).state));
    this.#apply(running.map((id) => ({ id, change: { cancelAsked: true } })));
  }

  #tell(before: Task, after: Task): void {
    const { id, state, message, attempt } = after;
    if (hasEnded(state)) this.#options.emit({ type: 'ended', task: id, state, message });
    else if (state === 'running' && (before.state !== 'running' || before.attempt !== attempt))
      this.#options.emit({ type: 'started', task: id, attempt, nodes: this.#pieces.places.get(id) ?? '' });
    else if (state === 'queued' && message !== '' && message !== before.message)
      this.#options.emit({ type: 'retry', task: id, message });
  }

  async #answer(request: BatchRequest, watcher: number | null): Promise<BatchAnswer> {
    switch (request.asks) {
      case 'status':
        return { answer: 'status', status: this.#status(watcher, await this.#noticeAfterLook()) };
      case 'cancel':
        return done(await this.#cancel(this.#selected(request.tasks)));
      case 'hold':
        return done(await this.#hold(this.#selected(request.tasks), true));
      case 'release':
        return done(await this.#hold(this.#selected(request.tasks), false));
      case 'rerun':
        return done(await this.#rerun(this.#selected(request.tasks)));
      case 'submit':
        return done(await this.#add(request.job));
      case 'release-host':
        throw usageError(
          `Slurm decides which hosts of ${this.#options.directory.id} get jobs`,
          `its administrator gives ${request.host} jobs again: scontrol update NodeName=${request.host} State=RESUME`,
        );
      default:
        return request satisfies never;
    }
  }

  #selected(tasks: string): readonly Task[] {
    return selectTasks(this.#store.spec, tasks).map((id) => this.#store.task(id));
  }

  async #noticeAfterLook(): Promise<string> {
    if (this.isOver || this.#options.now() - this.#lookedAt < FRESH_MS) return this.#planNotice();
    try {
      await this.#look();
      return this.#planNotice();
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      return `${messageOf(error)}; this is what was known before`;
    }
  }

  #planNotice(): string {
    const isWhole = this.#pieces.all.every(({ stage }) => stage === 'released' || stage === 'dropped');
    return isWhole ? '' : `not all of it is submitted: ncclrun batch --resume ${this.#options.directory.id} goes on`;
  }

  async #cancel(tasks: readonly Task[]): Promise<number> {
    await this.#look();
    const open = tasks.map(({ id }) => this.#store.task(id)).filter(({ state }) => !hasEnded(state));
    const now = this.#options.now();
    this.#apply(
      open.map(({ id, state }): TaskEdit => {
        return state === 'running'
          ? { id, change: { cancelAsked: true } }
          : { id, change: { state: 'cancelled', endedAt: now, message: 'cancelled by the user' } };
      }),
    );
    await cancel(this.#options.tool, this.#targetsOf(open));
    return open.length;
  }

  async #hold(tasks: readonly Task[], held: boolean): Promise<number> {
    await this.#look();
    const [from, to] = held ? (['queued', 'held'] as const) : (['held', 'queued'] as const);
    const found = tasks.map(({ id }) => this.#store.task(id)).filter(({ state }) => state === from);
    this.#apply(found.map(({ id }) => ({ id, change: { state: to } })));
    await (held ? hold : release)(this.#options.tool, this.#targetsOf(found));
    return found.length;
  }

  /** Of those that Slurm has. */
  #targetsOf(tasks: readonly Task[]): Target[] {
    const targets = new Map(
      this.#pieces.all.flatMap(({ tasks: all, slurmJob }) => all.map(({ task, index }) => [task, { slurmJob, index }])),
    );
    return tasks.flatMap(({ id }) => {
      const { slurmJob = null, index = null } = targets.get(id) ?? {};
      return slurmJob === null ? [] : [{ job: slurmJob, index }];
    });
  }

  async #rerun(tasks: readonly Task[]): Promise<number> {
    await this.#look();
    const now = this.#options.now();
    const ids = tasks
      .map(({ id }) => this.#store.task(id))
      .filter(({ state }) => hasEnded(state) && state !== 'succeeded')
      .map(({ id }) => id);
    const fresh = { state: 'queued', cancelAsked: false, startedAt: null, endedAt: null, exitCode: null } as const;
    const isNew = this.#isNothingPlanned();
    this.#pieces.together(() => {
      this.#apply(ids.map((id) => ({ id, change: { ...fresh, message: '', queuedAt: now } })));
      const vain = ids.filter((id) => this.#standingOf(this.#store.task(id)).standing === 'impossible');
      this.#apply(
        vain.map((id) => ({
          id,
          change: { state: 'skipped', endedAt: now, message: this.#standingOf(this.#store.task(id)).words },
        })),
      );
      this.#plan(new Set(ids.filter((id) => !hasEnded(this.#store.task(id).state))));
    });
    await this.#submit(isNew);
    return ids.length;
  }

  /** Of what was planned before, Slurm may have a part. */
  #isNothingPlanned(): boolean {
    return this.#pieces.all.every(({ stage }) => stage !== 'planned');
  }

  async #add(text: string): Promise<number> {
    const { jobOf, now, directory } = this.#options;
    const { spec } = this.#store;
    const job = jobOf(text, spec);
    const whole = { ...spec, jobs: [...spec.jobs, job] };
    refuseOnSlurm(whole, directory.id);
    await this.#look();
    const isNew = this.#isNothingPlanned();
    let ids: readonly number[] = [];
    this.#pieces.together(() => {
      ids = this.#store.add(whole, now());
      this.#known = null;
      this.#plan(new Set(ids));
    });
    await this.#submit(isNew);
    return ids.length;
  }

  #standingOf(task: Task): { readonly standing: string; readonly words: string } {
    return this.#transitions.dependencies.standingOf(task);
  }

  #why(task: Task): string {
    const sighting = this.#sightings.get(task.id);
    const { standing, words } = this.#standingOf(task);
    const dependency = standing === 'open' ? words : '';
    return sighting?.kind === 'waiting' ? reasonText(sighting.reason, dependency) : dependency;
  }

  #status(watcher: number | null, notice: string): BatchStatus {
    const { directory } = this.#options;
    return slurmStatusOf({
      directory,
      store: this.#store,
      places: this.#pieces.places,
      watcher,
      notice,
      why: (task) => this.#why(task),
    });
  }
}

function done(tasks: number): BatchAnswer {
  return { answer: 'done', tasks };
}
