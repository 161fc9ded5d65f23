/**
 * Runs a batch: what is decided is first on the disk, then done, and all that is done may be done again. So it may be killed at any instruction; the
 * next scheduler of the batch goes on.
 */
import type { Clock, Countdown } from '../../../control/clock.ts';
import { FailureError } from '../../model/failure-error.ts';
import { endOfFailure } from '../attempt/ending.ts';
import { isAlive } from '../attempt/process-identity.ts';
import type { AttemptEnd } from '../attempt/records.ts';
import type { Placement } from '../model/capacity.ts';
import type { JobSpec } from '../model/spec.ts';
import { hasEnded } from '../model/states.ts';
import type { Task, TaskEdit } from '../model/task.ts';
import type { HostRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { durationText } from '../../jobs/text.ts';
import { BadHosts } from './bad-hosts.ts';
import type { BatchEvent } from './batch-event.ts';
import { BusyGpus } from './busy-gpus.ts';
import type { AttemptPlan, Launchers } from './launchers.ts';
import type { AttemptHandler } from './own-attempt.ts';
import { afterAttempt } from './retry.ts';
import { Transitions } from './transition.ts';
import type { Waiting } from './waiting.ts';

/** What setTimeout can count. */
const LONGEST_TIMER_MS = 0x7fff_ffff;
/** Longer than any delay of a retry (retry.ts). */
const LONGEST_RETRY_MS = 900_000;

interface SchedulerOptions {
  readonly store: Store;
  readonly waiting: Waiting;
  readonly launchers: Launchers;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  now(this: void): number;
  /** 0 to 1. */
  random(this: void): number;
  planOf(this: void, task: Task, placement: Placement): AttemptPlan;
  /** To the launcher of its latest attempt, if that runs. */
  signal(this: void, task: Task, signal: NodeJS.Signals): void;
  emit(this: void, event: BatchEvent): void;
  /** Nothing runs, and nothing will. */
  over(this: void): void;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #store: Store;
  #transitions: Transitions;
  readonly #badHosts: BadHosts;
  readonly #busyGpus = new BusyGpus();
  /** Task → what happens to it later: a retry, or the signal ahead of its time limit. */
  readonly #timers = new Map<number, Countdown>();
  #active = 0;
  #hasBegun = false;
  /** No more tasks start. */
  #isStopping = false;
  #isOver = false;
  #wake: Countdown | null = null;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#transitions = this.#readTransitions();
    this.#badHosts = new BadHosts(options.store.hosts);
  }

  /** Takes over what an earlier scheduler has left, and begins. */
  begin(): void {
    for (const host of this.#store.hosts)
      this.#options.waiting.quarantine(host.name, host.quarantined_until, this.#options.now());
    // Some have ended meanwhile, and what that makes possible must not be mistaken for what was left.
    const [...left] = this.#store.tasks;
    for (const task of left) if (task.state === 'claimed' || task.state === 'running') this.#takeOver(task);
    for (const { id } of left) this.#admit(this.#store.task(id));
    this.#hasBegun = true;
    this.#pump();
  }

  /** Starts nothing more; ends what runs where `how` is cancel. */
  stop(how: 'finish' | 'cancel'): void {
    this.#isStopping = true;
    this.#options.emit({ type: 'stopping', how });
    if (how === 'cancel') this.cancel(this.#store.tasks.filter(({ state }) => !hasEnded(state)).map(({ id }) => id));
    this.#pump();
  }

  /** Of these the ones that have not ended. Returns how many there were. */
  cancel(ids: readonly number[]): number {
    const tasks = ids.map((id) => this.#store.task(id)).filter(({ state }) => !hasEnded(state));
    const now = this.#options.now();
    this.#apply(
      tasks.map(({ id, state }): TaskEdit => {
        return state === 'claimed' || state === 'running'
          ? { id, change: { cancelAsked: true } }
          : { id, change: { state: 'cancelled', endedAt: now, message: 'cancelled by the user' } };
      }),
    );
    for (const { id } of tasks) {
      const task = this.#store.task(id);
      if (hasEnded(task.state)) this.#tellEnd(task);
      else this.#options.signal(task, 'SIGTERM');
    }
    this.#pump();
    return tasks.length;
  }

  /** Takes one more job into the batch. Returns its tasks' number. */
  add(job: JobSpec): number {
    const { spec } = this.#store;
    const ids = this.#store.add({ ...spec, jobs: [...spec.jobs, job] }, this.#options.now());
    this.#transitions = this.#readTransitions();
    for (const id of ids) this.#admit(this.#store.task(id));
    this.#pump();
    return ids.length;
  }

  /** Waiting tasks are held, and start only once they were released. */
  hold(ids: readonly number[], held: boolean): number {
    const [from, to] = held ? (['queued', 'held'] as const) : (['held', 'queued'] as const);
    const tasks = ids.map((id) => this.#store.task(id)).filter(({ state }) => state === from);
    this.#apply(tasks.map(({ id }) => ({ id, change: { state: to } })));
    for (const { id } of tasks) this.#admit(this.#store.task(id));
    this.#pump();
    return tasks.length;
  }

  /** Ended tasks that did not succeed are queued again, with fresh budgets. */
  rerun(ids: readonly number[]): number {
    const tasks = ids.map((id) => this.#store.task(id)).filter(({ state }) => hasEnded(state) && state !== 'succeeded');
    const fresh = { errors: 0, interruptions: 0, hostDeaths: 0, notBefore: 0, cancelAsked: false } as const;
    const queued = {
      state: 'queued',
      endedAt: null,
      exitCode: null,
      message: '',
      queuedAt: this.#options.now(),
    } as const;
    this.#apply(tasks.map(({ id }) => ({ id, change: { ...fresh, ...queued } })));
    for (const { id } of tasks) this.#admit(this.#store.task(id));
    this.#pump();
    return tasks.length;
  }

  /** What a queued task waits for. */
  why(task: Task): string {
    const { standing, words } = this.#transitions.dependencies.standingOf(task);
    const now = this.#options.now();
    if (standing !== 'met') return words;
    if (task.notBefore > now) return `again in ${durationText((task.notBefore - now) / 1000)}`;
    return this.#options.waiting.why(task, now);
  }

  /** False: it is not quarantined. */
  releaseHost(name: string): boolean {
    const row = this.#badHosts.release(name);
    if (row === null) return false;
    this.#quarantine(row);
    this.#pump();
    return true;
  }

  /** What runs, runs on. Resolves when nothing else of the batch is left. */
  async close(): Promise<void> {
    this.#wake?.cancel();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#isOver = true;
    await this.#options.launchers.close();
  }

  #readTransitions(): Transitions {
    return new Transitions(this.#store.spec, (id) => this.#store.task(id));
  }

  #specOf({ job }: Task): JobSpec {
    const spec = this.#store.spec.jobs[job];
    if (spec === undefined) throw new Error(`the batch has no job ${job}`);
    return spec;
  }

  /** A waiting task may start from now on, or once its time has come. */
  #admit(task: Task): void {
    this.#timers.get(task.id)?.cancel();
    this.#timers.delete(task.id);
    const { waiting, now } = this.#options;
    if (task.state !== 'queued') return waiting.remove(task);
    const { standing, words } = this.#transitions.dependencies.standingOf(task);
    if (standing === 'impossible') return this.#skip(task, words);
    if (standing === 'open') return waiting.remove(task);
    const delay = task.notBefore - now();
    // Where the clock was set back, a retry would wait for hours.
    if (delay <= 0 || delay > LONGEST_RETRY_MS) return waiting.add(task, this.#specOf(task));
    waiting.remove(task);
    this.#timers.set(
      task.id,
      this.#options.clock.after(delay, () => {
        this.#admit(this.#store.task(task.id));
        this.#pump();
      }),
    );
    return undefined;
  }

  /** It can never run. */
  #skip({ id }: Task, message: string): void {
    this.#apply([{ id, change: { state: 'skipped', endedAt: this.#options.now(), message } }]);
    this.#tellEnd(this.#store.task(id));
  }

  /** Starts what may start. */
  #pump(): void {
    if (this.#isOver || !this.#hasBegun) return;
    this.#wake?.cancel();
    const now = this.#options.now();
    if (!this.#isStopping) {
      const starts = this.#options.waiting.next(now);
      if (starts.length > 0) {
        this.#store.claim(starts, now);
        for (const { id, placement } of starts) this.#start(id, placement);
      }
    }
    if (this.#active === 0 && (this.#isStopping || this.#store.tasks.every(({ state }) => hasEnded(state)))) {
      this.#isOver = true;
      this.#options.over();
      return;
    }
    const at = this.#options.waiting.nextAt(now);
    if (at !== null) this.#wake = this.#options.clock.after(Math.max(at - now, 1), () => this.#pump());
  }

  #start(id: number, placement: Placement): void {
    const task = this.#store.task(id);
    this.#active += 1;
    const handler = this.#handlerOf(task, placement);
    try {
      this.#options.launchers.start(id, this.#options.planOf(task, placement), handler);
    } catch (error) {
      if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw error;
      handler.ended(endOfFailure(error.failure, this.#options.now()));
    }
  }

  #handlerOf({ id, attempt }: Task, placement: Placement): AttemptHandler {
    return {
      started: (launcher) => {
        const now = this.#options.now();
        const begun = { id, change: { state: 'running', startedAt: now } } as const;
        const outcome = this.#transitions.apply([begun], now, () => this.#store.running(id, launcher, now));
        this.#options.emit({ type: 'started', task: id, attempt, placement });
        const task = this.#store.task(id);
        this.#signalBeforeLimit(task);
        if (task.cancelAsked) this.#options.signal(task, 'SIGTERM');
        this.#follow(outcome);
        this.#pump();
      },
      ended: (end) => this.#ended(id, end, placement),
    };
  }

  /** An earlier scheduler has claimed it. */
  #takeOver(task: Task): void {
    const { launchers, waiting, emit, now } = this.#options;
    const records = launchers.recordsOf(task.id, task.attempt);
    const decision = records.voidUnlessStarted();
    const placement = this.#store.placementOf(task.id);
    if (decision.decided === 'void') {
      this.#store.voided(task.id, now());
      if (task.cancelAsked) this.cancel([task.id]);
      else this.#admit(this.#store.task(task.id));
      return;
    }
    this.#active += 1;
    waiting.started(task, this.#specOf(task), placement, task.startedAt ?? now());
    const handler = this.#handlerOf(task, placement);
    if (task.state === 'claimed') handler.started(decision.launcher);
    else this.#signalBeforeLimit(task);
    if (isAlive(decision.launcher)) emit({ type: 'adopted', task: task.id, attempt: task.attempt });
    launchers.adopt(records, decision.launcher, handler);
    if (task.cancelAsked) this.#options.signal(task, 'SIGTERM');
  }

  /** As the file asks for it. */
  #signalBeforeLimit(task: Task): void {
    const { signal, timeLimitSeconds } = this.#specOf(task);
    if (signal === null || timeLimitSeconds === null || task.startedAt === null) return;
    const { clock, now } = this.#options;
    const at = task.startedAt + (timeLimitSeconds - signal.secondsBefore) * 1000;
    const delay = Math.min(Math.max(at - now(), 0), LONGEST_TIMER_MS);
    this.#timers.set(
      task.id,
      clock.after(delay, () => this.#options.signal(task, signal.name)),
    );
  }

  #ended(id: number, end: AttemptEnd | null, placement: Placement): void {
    const { waiting, now, emit, random } = this.#options;
    const before = this.#store.task(id);
    const at = now();
    this.#active -= 1;
    this.#timers.get(id)?.cancel();
    const change = afterAttempt(before, this.#specOf(before).retry, end, at, random());
    const outcome = this.#transitions.apply([{ id, change }], at, (edits) => this.#store.ended(id, end, edits, at));
    waiting.ended(before);
    for (const { host, slot, until } of this.#busyGpus.afterEnd(placement, end?.busySlots ?? [], at))
      waiting.leaveAlone(host, slot, at, until);
    const task = this.#store.task(id);
    if (hasEnded(task.state)) emit({ type: 'ended', task: id, state: task.state, message: task.message });
    else emit({ type: 'retry', task: id, message: task.message, notBefore: task.notBefore });
    const bad = this.#badHosts.afterEnd(
      {
        job: task.job,
        hosts: placement.map(({ host }) => host),
        lost: end?.badHosts.filter(({ lost }) => lost).map(({ name }) => name) ?? [],
        failed: end?.outcome === 'error',
        lastedMs: at - (before.startedAt ?? at),
      },
      at,
    );
    for (const row of bad) {
      this.#quarantine(row);
      emit({ type: 'quarantined', host: row.name, until: row.quarantined_until, reason: row.reason });
    }
    this.#admit(task);
    this.#follow(outcome);
    this.#pump();
  }

  #apply(edits: readonly TaskEdit[]): void {
    this.#follow(this.#transitions.apply(edits, this.#options.now(), (all) => this.#store.edit(all)));
  }

  /** What a transition has made possible, or impossible. */
  #follow({ perhapsReady, skipped, toCancel }: ReturnType<Transitions['apply']>): void {
    for (const id of skipped) this.#tellEnd(this.#store.task(id));
    for (const id of perhapsReady) this.#admit(this.#store.task(id));
    if (toCancel.length > 0) this.cancel(toCancel);
  }

  /** It has ended without having run. */
  #tellEnd(task: Task): void {
    this.#timers.get(task.id)?.cancel();
    this.#options.waiting.remove(task);
    const { id, state, message } = task;
    if (hasEnded(state)) this.#options.emit({ type: 'ended', task: id, state, message });
  }

  #quarantine(row: HostRow): void {
    this.#store.quarantine(row);
    this.#options.waiting.quarantine(row.name, row.quarantined_until, this.#options.now());
  }
}
