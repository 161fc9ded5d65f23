/** Batches and their tasks for people. */
import { type TaskState, taskStates } from '../model/states.ts';
import type { BatchStatus, TaskStatus } from '../serve/request.ts';
import { durationText } from '../../jobs/text.ts';
import { columns } from '../../text/columns.ts';
import { counted } from '../../text/counted.ts';

export function batchesText(batches: readonly BatchStatus[], now: number): string {
  if (batches.length === 0) return 'no batch of yours is kept on this machine\n';
  const rows = batches.map((batch) => {
    const { id, tasks, createdAt, endedAt } = batch;
    const of = (...states: readonly TaskState[]) => String(tasks.filter(({ state }) => states.includes(state)).length);
    return [
      id,
      stateOf(batch),
      String(tasks.length),
      of('queued', 'held'),
      of('claimed', 'running'),
      of('succeeded'),
      of('failed', 'timed-out', 'lost'),
      of('cancelled', 'skipped'),
      durationText(((endedAt ?? now) - createdAt) / 1000),
    ];
  });
  return columns([['BATCH', 'STATE', 'TASKS', 'WAITING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'SKIPPED', 'FOR'], ...rows]);
}

export function batchText(batch: BatchStatus, now: number, shown = batch.tasks): string {
  const { id, file, tasks, scheduler, hosts, notice } = batch;
  const process = scheduler === null ? '' : `, process ${scheduler}`;
  const head = `${id} (${file}): ${stateOf(batch)}${process}: ${countsText(tasks)}\n`;
  const rows = shown.map((task) => [
    task.name,
    task.state,
    task.attempt === 0 ? '' : String(task.attempt),
    task.hosts.map(({ name, ranks }) => (ranks === null ? name : `${name}:${ranks}`)).join(','),
    timeText(task, now),
    task.message,
  ]);
  const table = rows.length === 0 ? '' : columns([['TASK', 'STATE', 'ATTEMPT', 'HOSTS', 'TIME', 'WHY'], ...rows]);
  const out = hosts.filter(({ quarantinedUntil }) => quarantinedUntil !== null && quarantinedUntil > now);
  const outText = out.map(
    ({ name, quarantinedUntil, reason }) =>
      `${name} gets no tasks for ${durationText(((quarantinedUntil ?? now) - now) / 1000)}: ${reason}; ncclrun release --host ${name} ${id} ends that\n`,
  );
  return `${head}${table}${outText.join('')}${notice === undefined ? '' : `${notice}\n`}`;
}

/** `12 succeeded, 4 running`; states that no task is in are left out. */
export function countsText(tasks: readonly Pick<TaskStatus, 'state'>[]): string {
  const counts = new Map<TaskState, number>();
  for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
  const parts = taskStates.flatMap((state) => {
    const count = counts.get(state);
    return count === undefined ? [] : [`${count} ${state}`];
  });
  return `${counted(tasks.length, 'task')}: ${parts.join(', ')}`;
}

function stateOf({ endedAt, scheduler, via }: BatchStatus): string {
  if (via === 'slurm' && endedAt === null) return 'in Slurm';
  if (scheduler !== null) return 'running';
  return endedAt === null ? 'interrupted' : 'ended';
}

function timeText({ startedAt, endedAt }: TaskStatus, now: number): string {
  return startedAt === null ? '' : durationText(((endedAt ?? now) - startedAt) / 1000);
}
