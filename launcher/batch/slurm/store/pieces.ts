/** Which pieces of a batch Slurm was to get, and which it has: beside the tables of the batch, in its database. */
import type { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import { transaction } from '../../store/transaction.ts';
import type { Piece } from '../plan/piece.ts';

const TABLES = `
CREATE TABLE IF NOT EXISTS piece (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  job INTEGER NOT NULL,
  tasks TEXT NOT NULL,
  before INTEGER NOT NULL,
  waits TEXT NOT NULL,
  slurm_job INTEGER,
  stage TEXT NOT NULL CHECK (stage IN ('planned', 'submitted', 'released', 'dropped'))
) STRICT;
CREATE TABLE IF NOT EXISTS place (
  task INTEGER PRIMARY KEY,
  nodes TEXT NOT NULL
) STRICT;
`;

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/**
 * planned ─► submitted ─► released   Slurm holds it until its release, for which the batch has all numbers of its pieces
 *    └───────────┴─► dropped         sbatch refused it or another piece with it, or nothing of it is to run any more
 */
const stages = ['planned', 'submitted', 'released', 'dropped'] as const;

export interface KnownPiece extends Piece {
  /** Number of the job in Slurm; null: not known, though Slurm may have it. */
  readonly slurmJob: number | null;
  readonly stage: (typeof stages)[number];
}

const waitKinds = ['after', 'afterany', 'afterok', 'afternotok', 'aftercorr'] as const;

const pieceRow = v.pipe(
  v.object({
    number: whole,
    name: v.string(),
    job: whole,
    tasks: v.pipe(v.string(), v.parseJson(), v.array(v.object({ task: whole, index: v.nullable(whole) }))),
    before: whole,
    waits: v.pipe(
      v.string(),
      v.parseJson(),
      v.array(v.object({ kind: v.picklist(waitKinds), pieces: v.array(whole) })),
    ),
    slurm_job: v.nullable(whole),
    stage: v.picklist(stages),
  }),
  v.transform(({ slurm_job: slurmJob, ...row }): KnownPiece => ({ ...row, slurmJob })),
);

export class PieceStore {
  readonly #database: DatabaseSync;
  #pieces: readonly KnownPiece[] = [];

  /** The batch's store closes the database. */
  constructor(database: DatabaseSync) {
    this.#database = database;
    transaction(database, () => database.exec(TABLES));
    this.#read();
  }

  /** By their numbers. */
  get all(): readonly KnownPiece[] {
    return this.#pieces;
  }

  /** All that `body` changes here and in the batch's store is on the disk when this returns, or nothing of it. */
  together(body: () => void): void {
    transaction(this.#database, body);
  }

  plan(pieces: readonly Piece[]): void {
    const insert = this.#database.prepare(
      "INSERT INTO piece (number, name, job, tasks, before, waits, stage) VALUES (?, ?, ?, ?, ?, ?, 'planned')",
    );
    transaction(this.#database, () => {
      for (const { number, name, job, tasks, before, waits } of pieces)
        insert.run(number, name, job, JSON.stringify(tasks), before, JSON.stringify(waits));
    });
    this.#read();
  }

  /** Slurm has it, and holds it. */
  submitted(number: number, slurmJob: number): void {
    this.#change("slurm_job = ?, stage = 'submitted'", 'planned', number, slurmJob);
  }

  released(number: number): void {
    this.#change("stage = 'released'", 'submitted', number);
  }

  dropped({ number, stage }: KnownPiece): void {
    this.#change("stage = 'dropped'", stage, number);
  }

  /** Of the latest attempt of each task that has run. */
  get places(): ReadonlyMap<number, string> {
    const rows = this.#database.prepare('SELECT task, nodes FROM place').all();
    return new Map(rows.map(({ task, nodes }) => [Number(task), String(nodes)]));
  }

  setPlaces(places: ReadonlyMap<number, string>): void {
    const upsert = this.#database.prepare(
      'INSERT INTO place (task, nodes) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET nodes = excluded.nodes',
    );
    transaction(this.#database, () => {
      for (const [task, nodes] of places) upsert.run(task, nodes);
    });
  }

  #change(set: string, from: KnownPiece['stage'], number: number, ...values: readonly number[]): void {
    transaction(this.#database, () => {
      const { changes } = this.#database
        .prepare(`UPDATE piece SET ${set} WHERE number = ? AND stage = ?`)
        .run(...values, number, from);
      if (changes !== 1) throw new Error(`piece ${number} of the batch is not ${from} any more`);
    });
    this.#read();
  }

  #read(): void {
    this.#pieces = v.parse(v.array(pieceRow), this.#database.prepare('SELECT * FROM piece ORDER BY number').all());
  }
}
