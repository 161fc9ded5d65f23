/**
 * node --expose-gc bench/batch/schedule.ts [--workloads N] [--lists N] [--json]: how good and how fast the scheduling of a batch is. First the makespan of random
 * workloads, divided by that of the best of many random list schedules: each starts whatever fits, in an order of its own, with nothing reserved. Then
 * the time to add 100,000 tasks, and that of each decision that starts one of them.
 */
import { parseArgs } from 'node:util';
import { partsIn, wishOf } from '../../launcher/batch/schedule/candidates.ts';
import { forecast } from '../../launcher/batch/schedule/forecast.ts';
import { Resources } from '../../launcher/batch/schedule/resources.ts';
import { TaskQueue } from '../../launcher/batch/schedule/queue.ts';
import { demandOf, hostsOf, randomWorkload, type Workload } from '../../test/rig/batch/workload.ts';
import { seededRandom, shuffled } from '../../test/rig/random.ts';
import { median } from '../measure.ts';

const GOAL_RATIO = 1.1;
const GOAL_ADD_MS = 1000;
const GOAL_NEXT_MS = 1;
/** Few tasks feel the order in which they must start more. */
const WORKLOAD_SIZES = [40, 160];
const TASKS = 100_000;
const HOST_COUNTS = [4, 32, 256];
const DECISIONS = 2000;

/** Milliseconds until all has ended that can start. */
function makespanOfQueue({ hosts, tasks }: Workload): number {
  const queue = new TaskQueue(hosts);
  for (const { task } of tasks) queue.add(task);
  const seconds = new Map(tasks.map(({ task, milliseconds }) => [task.id, milliseconds / 1000]));
  const all = forecast(queue, 0, { seconds: (id) => seconds.get(id) ?? null });
  return Math.max(...all.map(({ endAt }) => endAt ?? 0));
}

/** The same when tasks start in the given order as soon as they fit. */
function makespanOfList({ hosts, tasks }: Workload): number {
  const resources = new Resources(hosts);
  const names = hosts.map(({ name }) => name);
  const wishes = new Map(tasks.map(({ task: { demand } }) => [demand, wishOf(demand, names)]));
  let waiting = tasks.filter(({ task }) => partsIn(wishOf(task.demand, names), new Resources(hosts).rooms) !== null);
  let running: { readonly end: number; readonly free: () => void }[] = [];
  let now = 0;
  while (waiting.length > 0) {
    const full = new Set<unknown>();
    waiting = waiting.filter(({ task: { demand }, milliseconds }) => {
      const wish = wishes.get(demand);
      const parts = wish === undefined || full.has(demand) ? null : partsIn(wish, resources.rooms);
      full.add(parts === null ? demand : null);
      if (parts === null) return true;
      const placement = resources.placementOf(demand, parts);
      resources.take(placement);
      running.push({ end: now + milliseconds, free: () => resources.giveBack(placement) });
      return false;
    });
    if (waiting.length === 0) break;
    now = Math.min(...running.map(({ end }) => end));
    for (const { end, free } of running) if (end === now) free();
    running = running.filter(({ end }) => end > now);
  }
  return Math.max(...running.map(({ end }) => end));
}

interface Speed {
  readonly hosts: number;
  readonly addMs: number;
  readonly medianMs: number;
  /** All but one of a hundred are faster. */
  readonly slowMs: number;
  readonly slowestMs: number;
  /** Of heap, for each waiting task; with --expose-gc alone it means something. */
  readonly bytes: number;
}

/** Tasks of five demands; whenever one ends, the next decision starts another. */
function speedWith(hosts: number): Speed {
  const demands = [{ ranks: 1 }, { ranks: 2 }, { ranks: 4 }, { ranks: 8 }, { ranks: 16, nodes: 2 }].map(demandOf);
  const random = seededRandom(hosts);
  const tasks = Array.from({ length: TASKS }, (_, order) => ({
    id: `sweep[${order}]`,
    demand: demands[random(demands.length)] ?? demandOf(),
    priority: 10 * random(2),
    timeLimitSeconds: 3600,
    order,
    queuedAt: 0,
  }));
  const queue = new TaskQueue(hostsOf(Array.from({ length: hosts }, () => 8)));
  globalThis.gc?.();
  const heap = process.memoryUsage().heapUsed;
  const start = performance.now();
  for (const task of tasks) queue.add(task);
  const addMs = performance.now() - start;
  globalThis.gc?.();
  const bytes = (process.memoryUsage().heapUsed - heap) / TASKS;
  queue.next(0);
  const times: number[] = [];
  for (let now = 1; times.length < DECISIONS; now += 1000) {
    const running = queue.runningTasks;
    const ended = running[random(running.length)];
    if (ended === undefined) break;
    queue.ended(ended.id);
    const begin = performance.now();
    const started = queue.next(now).length;
    if (started > 0) times.push((performance.now() - begin) / started);
  }
  const sorted = times.toSorted((one, other) => one - other);
  const slowMs = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
  return { hosts, addMs, medianMs: median(times) ?? Number.NaN, slowMs, slowestMs: Math.max(...times), bytes };
}

const { values } = parseArgs({
  options: {
    workloads: { type: 'string', default: '20' },
    lists: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
  },
});

function ratiosOf(tasks: number) {
  return Array.from({ length: Number(values.workloads) }, (_, index) => {
    const random = seededRandom(index + 1);
    const workload = randomWorkload(random, { hosts: 4, tasks, isPlain: true });
    const lists = Array.from({ length: Number(values.lists) }, () => shuffled(workload.tasks, random));
    const best = Math.min(...lists.map((list) => makespanOfList({ ...workload, tasks: list })));
    const ours = makespanOfQueue(workload);
    return { workload: index + 1, tasks, oursMinutes: ours / 60_000, bestMinutes: best / 60_000, ratio: ours / best };
  });
}

const ratios = WORKLOAD_SIZES.map(ratiosOf);
const speeds = HOST_COUNTS.map(speedWith);

if (values.json) {
  const goals = { ratio: GOAL_RATIO, addMs: GOAL_ADD_MS, nextMs: GOAL_NEXT_MS };
  process.stdout.write(`${JSON.stringify({ goals, ratios, speeds })}\n`);
} else {
  for (const rows of ratios) {
    process.stdout.write('workload  tasks  ours min  best list min  ratio\n');
    for (const { workload, tasks, oursMinutes, bestMinutes, ratio } of rows) {
      const cells = [String(workload).padStart(8), String(tasks).padStart(7), oursMinutes.toFixed(0).padStart(10)];
      process.stdout.write(`${cells.join('')}${bestMinutes.toFixed(0).padStart(15)}${ratio.toFixed(2).padStart(7)}\n`);
    }
    const all = rows.map(({ ratio }) => ratio);
    const within = all.filter((ratio) => ratio <= GOAL_RATIO).length;
    const figures = `median ${(median(all) ?? Number.NaN).toFixed(2)}, largest ${Math.max(...all).toFixed(2)}`;
    process.stdout.write(`${within} of ${all.length} within ${GOAL_RATIO}; ${figures}\n\n`);
  }
  process.stdout.write(`   hosts  add ${TASKS} ms  bytes each  next ms  99 of 100 within ms  slowest ms\n`);
  for (const { hosts, addMs, bytes, medianMs, slowMs, slowestMs } of speeds) {
    const cells = [String(hosts).padStart(8), addMs.toFixed(0).padStart(15), bytes.toFixed(0).padStart(12)];
    process.stdout.write(
      `${cells.join('')}${medianMs.toFixed(3).padStart(9)}${slowMs.toFixed(3).padStart(21)}${slowestMs.toFixed(2).padStart(12)}\n`,
    );
  }
  process.stdout.write(`goals: ${GOAL_ADD_MS} ms to add all, ${GOAL_NEXT_MS} ms for each task that starts\n`);
}
