/** `ncclrun batch --dry-run`: which task would run where and when, if each ran as long as it may. */
import type { HostCapacity } from '../../batch/model/capacity.ts';
import type { BatchSpec, JobSpec } from '../../batch/model/spec.ts';
import { hasEnded } from '../../batch/model/states.ts';
import type { Task } from '../../batch/model/task.ts';
import { newTasks } from '../../batch/model/new-tasks.ts';
import { taskName } from '../../batch/run/task-name.ts';
import { Transitions } from '../../batch/run/transition.ts';
import { forecast, type ForecastTask } from '../../batch/schedule/forecast.ts';
import { ganttText } from '../../batch/schedule/gantt.ts';
import { TaskQueue } from '../../batch/schedule/queue.ts';
import type { WaitingTask } from '../../batch/schedule/task.ts';
import { columns as inColumns } from '../../text/columns.ts';

/** Of a task without a time limit, for the picture. */
const ASSUMED_SECONDS = 3600;

/** Every task that does not fail. */
export function predictedSchedule(
  spec: BatchSpec,
  hosts: readonly HostCapacity[],
  now: number,
  terminalColumns: number,
): string {
  const tasks = newTasks(spec, now);
  const at = (id: number): Task => {
    const task = tasks[id];
    if (task === undefined) throw new Error(`the batch has no task ${id}`);
    return task;
  };
  const names = tasks.map((task) => taskName(spec, task));
  const numbers = new Map(names.map((name, id) => [name, id]));
  const jobOf = (task: Task): JobSpec | undefined => spec.jobs[task.job];
  const transitions = new Transitions(spec, at);
  const waitingOf = (task: Task): WaitingTask[] => {
    const job = jobOf(task);
    const isReady = task.state === 'queued' && transitions.dependencies.standingOf(task).standing === 'met';
    if (job === undefined || !isReady) return [];
    const { demand, priority, timeLimitSeconds } = job;
    return [{ id: names[task.id] ?? '', demand, priority, timeLimitSeconds, order: task.id, queuedAt: task.queuedAt }];
  };
  const queue = new TaskQueue(hosts);
  for (const task of tasks) for (const waiting of waitingOf(task)) queue.add(waiting);
  const found = forecast(queue, now, {
    seconds: (name) => jobOf(at(numbers.get(name) ?? 0))?.timeLimitSeconds ?? ASSUMED_SECONDS,
    released: (name, time) => {
      const change = { state: 'succeeded', startedAt: now, endedAt: time } as const;
      const { perhapsReady } = transitions.apply([{ id: numbers.get(name) ?? 0, change }], time, (edits) => {
        for (const edit of edits) tasks[edit.id] = { ...at(edit.id), ...edit.change };
      });
      return perhapsReady.flatMap((id) => waitingOf(at(id)));
    },
  });
  const foundNames = new Set(found.map(({ id }) => id));
  const left = tasks.filter(({ state, id }) => !hasEnded(state) && !foundNames.has(names[id] ?? ''));
  const never = left.map(
    ({ id, state }) =>
      `${names[id] ?? id} does not start: ${state === 'held' ? 'it is held' : 'what it waits for does not happen'}\n`,
  );
  const rows = found.map((one) => [one.id, ...timesText(one, now), placeText(one)]);
  return [
    inColumns([['TASK', 'STARTS AFTER', 'ENDS AFTER', 'HOSTS'], ...rows]),
    ...never,
    '\n',
    ganttText({ tasks: found, hosts: hosts.map(({ name }) => name), now, columns: terminalColumns }),
  ].join('');
}

function timesText({ startAt, endAt }: ForecastTask, now: number): [string, string] {
  const seconds = (time: number | null) => (time === null ? '' : elapsedText((time - now) / 1000));
  return [seconds(startAt), seconds(endAt)];
}

function elapsedText(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return [hours, minutes, whole % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

function placeText({ placement }: ForecastTask): string {
  return placement === null ? 'never fits' : placement.map(({ host, ranks }) => `${host}:${ranks}`).join(',');
}
