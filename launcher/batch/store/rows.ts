/** Rows of the tables, checked. */
import * as v from 'valibot';
import { taskStates } from '../model/states.ts';
import type { Task } from '../model/task.ts';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const flag = v.pipe(
  v.picklist([0, 1]),
  v.transform((value) => value === 1),
);

const taskRow = v.pipe(
  v.object({
    task: whole,
    job: whole,
    position: whole,
    state: v.picklist(taskStates),
    attempt: whole,
    errors: whole,
    interruptions: whole,
    host_deaths: whole,
    queued_at: whole,
    not_before: whole,
    started_at: v.nullable(whole),
    ended_at: v.nullable(whole),
    exit_code: v.nullable(whole),
    message: v.string(),
    cancel_asked: flag,
  }),
  v.transform(
    (row): Task => ({
      id: row.task,
      job: row.job,
      position: row.position,
      state: row.state,
      attempt: row.attempt,
      errors: row.errors,
      interruptions: row.interruptions,
      hostDeaths: row.host_deaths,
      queuedAt: row.queued_at,
      notBefore: row.not_before,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      exitCode: row.exit_code,
      message: row.message,
      cancelAsked: row.cancel_asked,
    }),
  ),
);

export const taskRows = v.array(taskRow);

export const batchRow = v.object({
  id: v.string(),
  /** Path of the file, as it was given. */
  file: v.string(),
  spec: v.string(),
  generation: whole,
  created_at: whole,
  ended_at: v.nullable(whole),
});
export type BatchRow = v.InferOutput<typeof batchRow>;

const share = v.object({
  host: v.string(),
  ranks: whole,
  slots: v.array(whole),
  cpus: whole,
  memoryBytes: whole,
  exclusive: v.boolean(),
});
export const placement = v.array(share);

export const hostRows = v.array(
  v.object({ name: v.string(), quarantined_until: whole, quarantines: whole, reason: v.string() }),
);
export type HostRow = v.InferOutput<typeof hostRows>[number];
