/** Hosts and tasks for the queue of a batch, also at random. */
import type { HostCapacity, Placement } from '../../../launcher/batch/model/capacity.ts';
import type { Demand } from '../../../launcher/batch/model/spec.ts';
import { TaskQueue } from '../../../launcher/batch/schedule/queue.ts';
import type { WaitingTask } from '../../../launcher/batch/schedule/task.ts';
import type { Random } from '../random.ts';

/** One rank on one slot, but for what is said. */
export function demandOf(said: Partial<Demand> = {}): Demand {
  return {
    ranks: 1,
    nodes: null,
    ranksPerNode: null,
    takesSlots: true,
    cpusPerRank: 0,
    memoryBytes: 0,
    exclusive: false,
    hosts: null,
    exclude: [],
    ...said,
  };
}

/** `node1`, `node2` …, each with so many slots. */
export function hostsOf(slots: readonly number[], said: Partial<HostCapacity> = {}): HostCapacity[] {
  return slots.map((count, index) => ({
    name: `node${index + 1}`,
    slots: Array.from({ length: count }, (_, slot) => slot),
    cpus: null,
    memoryBytes: null,
    ...said,
  }));
}

let order = 0;

/** Behind those that were made before; with a time limit of an hour, but for what is said. */
export function taskOf(id: string, said: Partial<Demand> = {}, more: Partial<WaitingTask> = {}): WaitingTask {
  order += 1;
  return { id, demand: demandOf(said), priority: 0, timeLimitSeconds: 3600, order, queuedAt: 0, ...more };
}

export function queueOf(hosts: readonly HostCapacity[], tasks: readonly WaitingTask[]): TaskQueue {
  const queue = new TaskQueue(hosts);
  for (const task of tasks) queue.add(task);
  return queue;
}

/** `node1:0123` in the order of ranks: host, then its slots or, without any, the number of ranks. */
export function placeText(placement: Placement | undefined): string {
  if (placement === undefined) return 'waits';
  return placement.map(({ host, slots, ranks }) => `${host}:${slots.join('') || `${ranks} ranks`}`).join(' ');
}

export interface PlannedTask {
  readonly task: WaitingTask;
  /** How long it really runs: its time limit at most. */
  readonly milliseconds: number;
}

export interface Workload {
  readonly hosts: readonly HostCapacity[];
  /** In the order of their times in the queue. */
  readonly tasks: readonly PlannedTask[];
}

export interface WorkloadSize {
  readonly hosts: number;
  readonly tasks: number;
  /** All wait from the beginning, and have time limits. */
  readonly isPlain?: boolean;
}

const MINUTE = 60_000;

export function randomWorkload(random: Random, size: WorkloadSize): Workload {
  const { isPlain = false } = size;
  const chance = (percent: number): boolean => random(100) < percent;
  const hosts = hostsOf(Array.from({ length: size.hosts }, () => (isPlain ? 8 : 1 + random(8)))).map((host) => ({
    ...host,
    cpus: chance(50) ? 4 + random(16) : null,
    memoryBytes: chance(50) ? 100 : null,
  }));
  const demands = Array.from({ length: 6 }, () => randomDemand(random, hosts.length, isPlain));
  const tasks = Array.from({ length: size.tasks }, (_, order): PlannedTask => {
    const minutes = 1 + random(60);
    const task = {
      id: `task[${order}]`,
      demand: demands[random(demands.length)] ?? demandOf(),
      priority: isPlain ? 0 : 10 * random(3),
      timeLimitSeconds: !isPlain && chance(20) ? null : 60 * (minutes + (isPlain ? 0 : random(20))),
      order,
      queuedAt: isPlain || chance(50) ? 0 : random(120) * MINUTE,
    };
    return { task, milliseconds: minutes * MINUTE };
  });
  return { hosts, tasks: tasks.toSorted((one, other) => one.task.queuedAt - other.task.queuedAt) };
}

function randomDemand(random: Random, hosts: number, isPlain: boolean): Demand {
  const chance = (percent: number): boolean => random(100) < percent;
  const nodes = 1 + random(hosts);
  const [shape = {}] = [
    { ranks: 1 + random(8) },
    { ranks: nodes * (1 + random(8)), nodes },
    { ranks: nodes * 4, ranksPerNode: 4 },
  ].slice(random(3));
  if (isPlain) return demandOf(shape);
  return demandOf({
    ...shape,
    takesSlots: chance(80),
    cpusPerRank: random(3),
    memoryBytes: chance(30) ? 10 * random(8) : 0,
    exclusive: chance(15),
    hosts: chance(10) ? ['node1', 'node2', 'node3'] : null,
    exclude: chance(10) ? ['node1'] : [],
  });
}
