/** The queue of a batch on random workloads, beside a reference that tries everything. */
import { expect, it } from 'vitest';
import { forecast } from '../../launcher/batch/schedule/forecast.ts';
import { TaskQueue } from '../../launcher/batch/schedule/queue.ts';
import type { WaitingTask } from '../../launcher/batch/schedule/task.ts';
import { ReferenceHosts } from '../rig/batch/reference.ts';
import { randomWorkload, type Workload } from '../rig/batch/workload.ts';
import { seededRandom } from '../rig/random.ts';

const HOUR = 3_600_000;
const SEEDS = Array.from({ length: 50 }, (_, seed) => seed + 1);

interface Started {
  readonly id: string;
  readonly at: number;
  readonly slots: string;
}

function before(one: WaitingTask, other: WaitingTask, now: number): number {
  const points = ({ priority, queuedAt }: WaitingTask): number => priority * HOUR + Math.min(20 * HOUR, now - queuedAt);
  return points(other) - points(one) || one.order - other.order;
}

/** Runs all of it in simulated time and checks each decision. */
class Trial {
  readonly starts: Started[] = [];
  readonly #queue: TaskQueue;
  readonly #reference: ReferenceHosts;
  readonly #waiting = new Map<string, WaitingTask>();
  readonly #ends = new Map<string, number>();
  readonly #milliseconds: ReadonlyMap<string, number>;
  /** Of tasks that had the reservation: when they start at the latest. */
  readonly #promised = new Map<string, number>();
  readonly #workload: Workload;

  constructor(workload: Workload) {
    this.#workload = workload;
    this.#queue = new TaskQueue(workload.hosts);
    this.#reference = new ReferenceHosts(workload.hosts);
    this.#milliseconds = new Map(workload.tasks.map(({ task, milliseconds }) => [task.id, milliseconds]));
  }

  /** Holds a host for a time and takes promises back, which do not hold then. */
  #hold(host: string, until: number): void {
    this.#queue.holdHost(host, until);
    this.#reference.held.set(host, until);
    this.#promised.clear();
  }

  run(holds: ReadonlyMap<number, { readonly host: string; readonly until: number }>): string[] {
    const coming = [...this.#workload.tasks];
    for (let now: number | null = 0; now !== null; ) {
      for (const [id, end] of this.#ends) {
        if (end > now) continue;
        this.#queue.ended(id);
        this.#reference.running.delete(id);
        this.#ends.delete(id);
      }
      for (let first = coming[0]; first !== undefined && first.task.queuedAt <= now; first = coming[0]) {
        coming.shift();
        this.#queue.add(first.task);
        this.#waiting.set(first.task.id, first.task);
        this.#promised.clear(); // it may come first
      }
      const hold = holds.get(now);
      if (hold !== undefined) this.#hold(hold.host, hold.until);
      for (const [host, until] of this.#reference.held) if (until <= now) this.#reference.held.delete(host);
      this.#look(now);
      const times = [...this.#ends.values(), ...this.#reference.held.values(), coming[0]?.task.queuedAt ?? Infinity];
      const after = times.filter((time) => time > (now ?? 0) && time !== Infinity);
      now = after.length === 0 ? null : Math.min(...after);
    }
    return [...this.#waiting.keys()];
  }

  #look(now: number): void {
    for (const { id, placement } of this.#queue.next(now)) {
      const task = this.#waiting.get(id);
      if (task === undefined) throw new Error(`${id} does not wait`);
      expect({ id, faults: this.#reference.faultsOf(task.demand, placement, now) }).toEqual({ id, faults: [] });
      expect(now).toBeLessThanOrEqual(this.#promised.get(id) ?? Infinity);
      this.#waiting.delete(id);
      // Others leave a reservation alone, for which they may need more hosts.
      if (this.#isPassing(task, now)) this.#promise(now);
      else expect(placement.length).toBe(this.#reference.fewestHosts(task.demand, now));
      this.#expectNoEqualBefore(task, now);
      const limit = (task.timeLimitSeconds ?? Infinity) * 1000;
      this.#reference.running.set(id, { placement, endBy: now + limit });
      this.#ends.set(id, now + (this.#milliseconds.get(id) ?? 0));
      this.starts.push({ id, at: now, slots: placement.map(({ host, slots }) => `${host}:${slots.join()}`).join() });
    }
    this.#checkWaiting(now);
  }

  #isPassing(task: WaitingTask, now: number): boolean {
    return this.#able(now).some((other) => before(other, task, now) < 0);
  }

  /** Waiting tasks that can fit, in the order of their turn. */
  #able(now: number): WaitingTask[] {
    const able = [...this.#waiting.values()].filter(({ demand }) => this.#reference.everFits(demand));
    return able.toSorted((one, other) => before(one, other, now));
  }

  /** The first one never starts later than it could now. */
  #promise(now: number): void {
    const [head] = this.#able(now);
    if (head === undefined) return;
    const at = this.#reference.earliest(head.demand, now);
    expect(at).toBeLessThanOrEqual(this.#promised.get(head.id) ?? Infinity);
    this.#promised.set(head.id, at);
  }

  #expectNoEqualBefore(task: WaitingTask, now: number): void {
    const equal = [...this.#waiting.values()].filter(
      ({ demand, priority, timeLimitSeconds }) =>
        demand === task.demand && priority === task.priority && timeLimitSeconds === task.timeLimitSeconds,
    );
    expect(equal.filter((other) => before(other, task, now) < 0)).toEqual([]);
  }

  /** The head has the reservation it can have, and what ends before that does not wait if it fits. */
  #checkWaiting(now: number): void {
    const [head, ...others] = this.#able(now);
    if (head === undefined) return;
    expect(this.#reference.fewestHosts(head.demand, now)).toBe(null);
    const at = this.#reference.earliest(head.demand, now);
    const reason = this.#queue.why(head.id, now);
    if (reason.kind === 'first') expect(reason.startBy ?? Infinity).toBe(at);
    else expect(reason.kind).toBe('hosts-held');
    this.#promise(now);
    const inTime = others.filter(
      ({ timeLimitSeconds }) => timeLimitSeconds !== null && now + timeLimitSeconds * 1000 <= at,
    );
    const demands = [...new Set(inTime.map(({ demand }) => demand))];
    expect(demands.filter((demand) => this.#reference.fewestHosts(demand, now) !== null)).toEqual([]);
  }
}

it('random workloads keep every promise and start every task that fits', () => {
  for (const seed of SEEDS) {
    const random = seededRandom(seed);
    const workload = randomWorkload(random, { hosts: 1 + random(5), tasks: 30 });
    const left = new Trial(workload).run(new Map());
    const reference = new ReferenceHosts(workload.hosts);
    const unable = workload.tasks.filter(({ task }) => !reference.everFits(task.demand)).map(({ task }) => task.id);
    expect(left.toSorted()).toEqual(unable.toSorted());
  }
});

it('random workloads also end when hosts are held out for a time', () => {
  for (const seed of SEEDS) {
    const random = seededRandom(1000 + seed);
    const workload = randomWorkload(random, { hosts: 2 + random(3), tasks: 25 });
    const holds = new Map([[0, { host: 'node1', until: 30 * 60_000 }]]);
    for (const { task } of workload.tasks)
      if (task.queuedAt > 0 && random(4) === 0)
        holds.set(task.queuedAt, { host: 'node2', until: task.queuedAt + HOUR });
    const left = new Trial(workload).run(holds);
    const reference = new ReferenceHosts(workload.hosts);
    expect(left.filter((id) => reference.everFits(demandIn(workload, id)))).toEqual([]);
  }
});

function demandIn({ tasks }: Workload, id: string) {
  const found = tasks.find(({ task }) => task.id === id);
  if (found === undefined) throw new Error(`no task ${id}`);
  return found.task.demand;
}

it('the same workload starts the same way twice, in whatever order its tasks are added', () => {
  for (const seed of SEEDS.slice(0, 30)) {
    const workload = randomWorkload(seededRandom(seed), { hosts: 4, tasks: 30 });
    const [one, two] = [new Trial(workload), new Trial({ ...workload, tasks: otherwise(workload) })];
    one.run(new Map());
    two.run(new Map());
    expect(two.starts).toEqual(one.starts);
  }
});

/** In another order among those that are queued at the same time. */
function otherwise({ tasks }: Workload): Workload['tasks'] {
  return tasks.toReversed().toSorted((one, other) => one.task.queuedAt - other.task.queuedAt);
}

it('a forecast with the real times is what happens', () => {
  for (const seed of SEEDS.slice(0, 30)) {
    const workload = randomWorkload(seededRandom(seed), { hosts: 3, tasks: 25 });
    const tasks = workload.tasks.map((planned) => ({ ...planned, task: { ...planned.task, queuedAt: 0 } }));
    const queue = new TaskQueue(workload.hosts);
    for (const { task } of tasks) queue.add(task);
    const trial = new Trial({ ...workload, tasks });
    trial.run(new Map());
    const seconds = new Map(tasks.map(({ task, milliseconds }) => [task.id, milliseconds / 1000]));
    const forecasts = forecast(queue, 0, { seconds: (id) => seconds.get(id) ?? null });
    const expected = trial.starts.map(({ id, at }) => ({ id, at }));
    expect(forecasts.flatMap(({ id, startAt }) => (startAt === null ? [] : [{ id, at: startAt }]))).toEqual(expected);
    expect(queue.waitingTasks.length).toBe(tasks.length);
  }
});
