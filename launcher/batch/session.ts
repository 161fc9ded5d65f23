/** A scheduler's life: it has the batch's database for itself, answers other commands, and goes on until nothing is left to run. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { steadyClock } from '../../control/clock.ts';
import { signalAwake } from '../local/stopped-process.ts';
import { usageError } from '../model/usage-error.ts';
import { isAlive } from './attempt/process-identity.ts';
import type { AttemptRecords } from './attempt/records.ts';
import type { HostCapacity } from './model/capacity.ts';
import type { BatchSpec, JobSpec } from './model/spec.ts';
import { hasEnded } from './model/states.ts';
import { attemptPlan } from './run/attempt-plans.ts';
import type { BatchEvent } from './run/batch-event.ts';
import { Launchers } from './run/launchers.ts';
import { refuseMisfit } from './run/refuse-misfit.ts';
import { Scheduler } from './run/scheduler.ts';
import { selectTasks } from './run/select.ts';
import { batchStatusOf } from './run/status-of.ts';
import { taskName } from './run/task-name.ts';
import { Waiting } from './run/waiting.ts';
import { TaskQueue } from './schedule/queue.ts';
import type { BatchAnswer, BatchRequest, BatchStatus } from './serve/request.ts';
import { BatchServer } from './serve/server.ts';
import type { BatchDirectory } from './state/directory.ts';
import { keepingOf } from './state/file-systems.ts';
import { openDatabase } from './store/open.ts';
import { Store } from './store/store.ts';

interface SessionOptions {
  readonly directory: BatchDirectory;
  /** Path of ncclrun. */
  readonly command: string;
  readonly hosts: readonly HostCapacity[];
  emit(this: void, event: BatchEvent): void;
  /** One more job for a batch, of JSON as its file would have it. Throws a FailureError (usage). */
  jobOf(this: void, text: string, spec: BatchSpec): JobSpec;
}

/** Throws a FailureError (usage) if another process has the batch. */
export function openStore(directory: BatchDirectory): Store {
  const store = openStoreIfFree(directory);
  if (store !== null) return store;
  throw usageError(
    `the scheduler of batch ${directory.id} runs already`,
    `ncclrun jobs ${directory.id} says how it fares`,
  );
}

/** Null: another process has it. */
export function openStoreIfFree(directory: BatchDirectory): Store | null {
  const database = openDatabase(directory.database, keepingOf(directory.path).kind !== 'shared');
  return database === null ? null : new Store(database);
}

/** A batch is on the disk when this returns, and nothing runs yet. */
export function submitBatch(store: Store, directory: BatchDirectory, spec: BatchSpec, file: string): void {
  store.submit({ id: directory.id, file, spec, createdAt: Date.now() });
}

export class Session {
  readonly #options: SessionOptions;
  readonly #store: Store;
  readonly #scheduler: Scheduler;
  readonly #over = Promise.withResolvers<void>();
  #server: BatchServer | null = null;
  #gone: Promise<void> = Promise.resolve();

  /** The session closes the store. */
  constructor(store: Store, generation: number, options: SessionOptions) {
    const { directory, command, hosts, emit } = options;
    this.#options = options;
    this.#store = store;
    const waiting = new Waiting(new TaskQueue(hosts), (task) => taskName(store.spec, task));
    const launchers = new Launchers({ command, attempts: directory.attempts, clock: steadyClock });
    this.#scheduler = new Scheduler({
      store,
      waiting,
      launchers,
      clock: steadyClock,
      now: Date.now,
      random: Math.random,
      planOf: (task, placement) => attemptPlan({ directory, launchers, spec: store.spec, generation }, task, placement),
      signal: (task, signal) => signalLauncher(launchers.recordsOf(task.id, task.attempt), signal),
      emit,
      over: () => this.#over.resolve(),
    });
  }

  #status(scheduler: number | null): BatchStatus {
    return batchStatusOf({
      directory: this.#options.directory,
      store: this.#store,
      hosts: this.#options.hosts,
      scheduler,
      why: (task) => this.#scheduler.why(task),
    });
  }

  /** Resolves when nothing is left to run, or `leave` was called. */
  async run(): Promise<void> {
    this.#server = await BatchServer.open(this.#options.directory.note, (request) => this.answer(request));
    this.#scheduler.begin();
    await this.#over.promise;
  }

  stop(how: 'finish' | 'cancel'): void {
    this.#scheduler.stop(how);
  }

  /** What runs, runs on. */
  leave(): void {
    this.#over.resolve();
  }

  /** After `close`: resolves when no process of the batch is left but for launchers that run a task. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** How it is left: somebody may go on with it unless all its tasks have ended. */
  close(): BatchStatus {
    this.#gone = this.#scheduler.close();
    const { batch, tasks } = this.#store;
    if (batch?.ended_at === null && tasks.every(({ state }) => hasEnded(state))) this.#store.endBatch(Date.now());
    const status = this.#status(null);
    this.#server?.close();
    this.#store.close();
    return status;
  }

  /** Throws a FailureError (usage) for tasks that are not there. */
  answer(request: BatchRequest): BatchAnswer {
    switch (request.asks) {
      case 'status':
        return { answer: 'status', status: this.#status(this.#server === null ? null : process.pid) };
      case 'cancel':
        return this.#done(this.#scheduler.cancel(this.#selected(request.tasks)));
      case 'hold':
        return this.#done(this.#scheduler.hold(this.#selected(request.tasks), true));
      case 'release':
        return this.#done(this.#scheduler.hold(this.#selected(request.tasks), false));
      case 'rerun':
        return this.#done(this.#scheduler.rerun(this.#selected(request.tasks)));
      case 'submit': {
        const job = this.#options.jobOf(request.job, this.#store.spec);
        refuseMisfit(job, this.#options.hosts);
        return this.#done(this.#scheduler.add(job));
      }
      case 'release-host':
        return this.#done(this.#scheduler.releaseHost(request.host) ? 1 : 0);
      default:
        return request satisfies never;
    }
  }

  #selected(tasks: string): readonly number[] {
    return selectTasks(this.#store.spec, tasks);
  }

  #done(tasks: number): BatchAnswer {
    return { answer: 'done', tasks };
  }
}

/** The process of a launcher that has ended may be another one's by now. */
function signalLauncher(records: AttemptRecords, signal: NodeJS.Signals): void {
  const decision = records.decision();
  if (decision?.decided === 'started' && isAlive(decision.launcher)) signalAwake(decision.launcher.pid, signal);
}

const FILE = 'hosts.json';

/** The hosts of a batch stay what they were when it began. */
export function writeHosts(directory: BatchDirectory, hosts: readonly HostCapacity[]): void {
  writeFileSync(join(directory.path, FILE), JSON.stringify(hosts), { mode: 0o600 });
}

export function readHosts(directory: BatchDirectory): HostCapacity[] {
  const hosts: HostCapacity[] = JSON.parse(readFileSync(join(directory.path, FILE), 'utf8'));
  return hosts;
}
