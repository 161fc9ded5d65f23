/**
 * What a batch has come to, on the disk and in memory alike. Every method is one transaction: what it says is on the disk when it returns, and
 * only then does the scheduler act on it. An error leaves the memory behind the disk at most, never ahead of it.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import * as v from 'valibot';
import type { Placement } from '../model/capacity.ts';
import type { BatchSpec } from '../model/spec.ts';
import type { Task, TaskEdit } from '../model/task.ts';
import type { AttemptEnd } from '../attempt/records.ts';
import type { ProcessIdentity } from '../attempt/process-identity.ts';
import { newTasks } from '../model/new-tasks.ts';
import { type BatchRow, batchRow, type HostRow, hostRows, placement, taskRows } from './rows.ts';
import { transaction } from './transaction.ts';

export interface Claim {
  readonly id: number;
  readonly placement: Placement;
}

/** Not yet in the database. */
interface NewBatch {
  readonly id: string;
  readonly file: string;
  readonly spec: BatchSpec;
  readonly createdAt: number;
}

export class Store {
  readonly #database: DatabaseSync;
  #tasks: Task[] = [];
  #batch: BatchRow | null = null;
  #spec: BatchSpec | null = null;
  readonly #update: StatementSync;

  /** The store closes it. */
  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#update = database.prepare(
      `UPDATE task SET state = ?, attempt = ?, errors = ?, interruptions = ?, host_deaths = ?, queued_at = ?, not_before = ?,
       started_at = ?, ended_at = ?, exit_code = ?, message = ?, cancel_asked = ? WHERE task = ? AND state = ? AND attempt = ?`,
    );
    this.#read();
  }

  /** Null before `submit`. */
  get batch(): BatchRow | null {
    return this.#batch;
  }

  get spec(): BatchSpec {
    if (this.#spec === null) throw new Error('the batch was not submitted');
    return this.#spec;
  }

  /** By their ids. */
  get tasks(): readonly Task[] {
    return this.#tasks;
  }

  task(id: number): Task {
    const task = this.#tasks[id];
    if (task === undefined) throw new Error(`the batch has no task ${id}`);
    return task;
  }

  submit({ id, file, spec, createdAt }: NewBatch): void {
    transaction(this.#database, () => {
      this.#database
        .prepare('INSERT INTO batch (only, id, file, spec, generation, created_at) VALUES (1, ?, ?, ?, 1, ?)')
        .run(id, file, JSON.stringify(spec), createdAt);
      this.#insertJobs(spec, 0, createdAt);
    });
    this.#read();
  }

  /** Another scheduler goes on with it. Returns its generation. */
  resume(): number {
    transaction(this.#database, () => {
      this.#database.prepare('UPDATE batch SET generation = generation + 1, ended_at = NULL').run();
    });
    this.#read();
    return this.#batch?.generation ?? 0;
  }

  /** One more job. Returns the ids of its tasks. */
  add(spec: BatchSpec, now: number): readonly number[] {
    const before = this.#tasks.length;
    transaction(this.#database, () => {
      this.#database.prepare('UPDATE batch SET spec = ?').run(JSON.stringify(spec));
      this.#insertJobs(spec, this.spec.jobs.length, now);
    });
    this.#read();
    return this.#tasks.slice(before).map(({ id }) => id);
  }

  /** New attempts of queued tasks. */
  claim(claims: readonly Claim[], now: number): void {
    const insert = this.#database.prepare(
      "INSERT INTO attempt (task, number, placement, claimed_at, message) VALUES (?, ?, ?, ?, '')",
    );
    this.#commit(
      claims.map(({ id }) => ({ id, change: { state: 'claimed', attempt: this.task(id).attempt + 1, message: '' } })),
      () => {
        for (const { id, placement: shares } of claims)
          insert.run(id, this.task(id).attempt + 1, JSON.stringify(shares), now);
      },
    );
  }

  /** Its launcher has decided that it starts. */
  running(id: number, launcher: ProcessIdentity, now: number): void {
    this.#commit([{ id, change: { state: 'running', startedAt: now } }], () => {
      this.#attempt('launcher = ?, started_at = ?', id, JSON.stringify(launcher), now);
    });
  }

  /** Nobody has started the attempt, and nobody will. */
  voided(id: number, now: number): void {
    this.#commit([{ id, change: { state: 'queued' } }], () => {
      this.#attempt("ended_at = ?, outcome = 'void'", id, now);
    });
  }

  /** An attempt has ended; null: nobody has said how. `edits` are of its task and of those that depend on it. */
  ended(
    id: number,
    end: Pick<AttemptEnd, 'outcome' | 'exitCode' | 'sentence'> | null,
    edits: readonly TaskEdit[],
    now: number,
  ): void {
    this.#commit(edits, () => {
      const { outcome, exitCode, sentence } = end ?? {
        outcome: 'lost',
        exitCode: null,
        sentence: 'its launcher was lost',
      };
      this.#attempt('ended_at = ?, outcome = ?, exit_code = ?, message = ?', id, now, outcome, exitCode, sentence);
    });
  }

  edit(edits: readonly TaskEdit[]): void {
    if (edits.length > 0) this.#commit(edits, () => {});
  }

  /** Of its latest attempt. */
  placementOf(id: number): Placement {
    const row = this.#database
      .prepare('SELECT placement FROM attempt WHERE task = ? AND number = ?')
      .get(id, this.task(id).attempt);
    return v.parse(placement, JSON.parse(String(row?.['placement'] ?? '[]')));
  }

  /** By task, of those that had an attempt. */
  latestPlacements(): ReadonlyMap<number, Placement> {
    const rows = this.#database
      .prepare('SELECT task, placement FROM attempt JOIN task USING (task) WHERE attempt.number = task.attempt')
      .all();
    return new Map(rows.map((row) => [Number(row['task']), v.parse(placement, JSON.parse(String(row['placement'])))]));
  }

  get hosts(): readonly HostRow[] {
    return v.parse(hostRows, this.#database.prepare('SELECT * FROM host').all());
  }

  quarantine({ name, quarantined_until: until, quarantines, reason }: HostRow): void {
    transaction(this.#database, () => {
      this.#database
        .prepare(
          `INSERT INTO host (name, quarantined_until, quarantines, reason) VALUES (?, ?, ?, ?)
           ON CONFLICT (name) DO UPDATE SET quarantined_until = excluded.quarantined_until,
           quarantines = excluded.quarantines, reason = excluded.reason`,
        )
        .run(name, until, quarantines, reason);
    });
  }

  endBatch(now: number): void {
    transaction(this.#database, () => {
      this.#database.prepare('UPDATE batch SET ended_at = ?').run(now);
    });
    if (this.#batch !== null) this.#batch = { ...this.#batch, ended_at: now };
  }

  close(): void {
    this.#database.close();
  }

  #insertJobs(spec: BatchSpec, first: number, now: number): void {
    const task = this.#database.prepare(
      `INSERT INTO task (task, job, position, state, attempt, errors, interruptions, host_deaths, queued_at, not_before, message, cancel_asked)
       VALUES (?, ?, ?, ?, 0, 0, 0, 0, ?, 0, '', 0)`,
    );
    for (const { id, job, position, state } of newTasks(spec, now, first, this.#tasks.length))
      task.run(id, job, position, state, now);
  }

  /** Of the latest attempt of a task. */
  #attempt(set: string, id: number, ...values: readonly (string | number | null)[]): void {
    const { changes } = this.#database
      .prepare(`UPDATE attempt SET ${set} WHERE task = ? AND number = ?`)
      .run(...values, id, this.task(id).attempt);
    if (changes !== 1) throw new Error(`task ${id} has no attempt ${this.task(id).attempt}`);
  }

  #commit(edits: readonly TaskEdit[], more: () => void): void {
    const changed = edits.map(({ id, change }) => ({ before: this.task(id), after: { ...this.task(id), ...change } }));
    transaction(this.#database, () => {
      for (const { before, after } of changed) this.#write(before, after);
      more();
    });
    for (const { after } of changed) this.#tasks[after.id] = after;
  }

  #write(before: Task, after: Task): void {
    const { changes } = this.#update.run(
      after.state,
      after.attempt,
      after.errors,
      after.interruptions,
      after.hostDeaths,
      after.queuedAt,
      after.notBefore,
      after.startedAt,
      after.endedAt,
      after.exitCode,
      after.message,
      after.cancelAsked ? 1 : 0,
      before.id,
      before.state,
      before.attempt,
    );
    if (changes !== 1)
      throw new Error(`task ${before.id} is not ${before.state} in attempt ${before.attempt} any more`);
  }

  /** From the disk, where there is a batch. */
  #read(): void {
    const row = this.#database.prepare('SELECT id, file, spec, generation, created_at, ended_at FROM batch').get();
    if (row === undefined) return;
    this.#batch = v.parse(batchRow, row);
    const spec: BatchSpec = JSON.parse(this.#batch.spec);
    this.#spec = spec;
    this.#tasks = v.parse(taskRows, this.#database.prepare('SELECT * FROM task ORDER BY task').all());
  }
}
