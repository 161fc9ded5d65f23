/** What other commands ask of a batch, and what they are told. */
import * as v from 'valibot';
import { taskStates } from '../model/states.ts';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const time = v.nullable(whole);

/** `tasks`: of a job by its name, of one task `job[index]`, of some `job[3-5]`; empty: all of the batch. */
const batchRequest = v.variant('asks', [
  v.object({ asks: v.literal('status') }),
  v.object({ asks: v.picklist(['cancel', 'hold', 'release', 'rerun']), tasks: v.string() }),
  v.object({ asks: v.literal('release-host'), host: v.string() }),
  /** JSON of one job, as a batch file has it. */
  v.object({ asks: v.literal('submit'), job: v.string() }),
]);
export type BatchRequest = v.InferOutput<typeof batchRequest>;

const taskStatus = v.object({
  /** `job` or `job[index]`. */
  name: v.string(),
  state: v.picklist(taskStates),
  attempt: whole,
  /** Of its latest attempt; empty before the first. `ranks` null: Slurm has dealt them, and does not say how. */
  hosts: v.array(v.object({ name: v.string(), ranks: v.nullable(whole) })),
  /** Of its latest attempt; null before the first. */
  output: v.nullable(v.string()),
  /** Why it is in its state, or what it waits for; may be empty. */
  message: v.string(),
  queuedAt: whole,
  startedAt: time,
  endedAt: time,
  exitCode: time,
});
export type TaskStatus = v.InferOutput<typeof taskStatus>;

const batchStatus = v.object({
  schemaVersion: v.literal(1),
  id: v.string(),
  file: v.string(),
  /** Whose queue its tasks wait in; without it, in that of its scheduler. */
  via: v.optional(v.literal('slurm')),
  /** Process of its scheduler; null: none runs. */
  scheduler: v.nullable(whole),
  createdAt: whole,
  endedAt: time,
  tasks: v.array(taskStatus),
  hosts: v.array(
    v.object({
      name: v.string(),
      slots: whole,
      used: whole,
      /** null: it gets tasks. */
      quarantinedUntil: time,
      reason: v.string(),
    }),
  ),
  /** What its reader should know beside it. */
  notice: v.optional(v.string()),
});
export type BatchStatus = v.InferOutput<typeof batchStatus>;

export const batchAnswer = v.variant('answer', [
  v.object({ answer: v.literal('status'), status: batchStatus }),
  /** How many tasks changed. */
  v.object({ answer: v.literal('done'), tasks: whole }),
  v.object({ answer: v.literal('refused'), message: v.string(), remedy: v.nullable(v.string()) }),
]);
export type BatchAnswer = v.InferOutput<typeof batchAnswer>;

/** In the batch's directory while its scheduler runs, for its user alone. */
export const schedulerNote = v.object({
  pid: whole,
  /** Name of an abstract Unix socket. */
  socket: v.string(),
  key: v.string(),
});

/** One line of JSON each way. */
export const keyedRequest = v.object({ key: v.string(), request: batchRequest });
