/** The line at the bottom of the terminal while a batch runs. */
import { hasEnded } from '../model/states.ts';
import type { Task } from '../model/task.ts';
import { durationText } from '../../jobs/text.ts';

/** Fewer ends say too little of how long the others will take. */
const MIN_ENDS = 3;

interface ProgressFacts {
  tasks(this: void): readonly Task[];
  nameOf(this: void, task: Task): string;
  /** Milliseconds since 1970: when this scheduler began. */
  readonly begunAt: number;
}

export class ProgressLine {
  readonly starting = false;
  readonly #facts: ProgressFacts;
  /** Tasks that had ended before. */
  readonly #before: number;

  constructor(facts: ProgressFacts) {
    this.#facts = facts;
    this.#before = facts.tasks().filter(({ state }) => hasEnded(state)).length;
  }

  line(columns: number, now: number): string {
    const tasks = this.#facts.tasks();
    const running: Task[] = [];
    let [ended, failed] = [0, 0];
    for (const task of tasks) {
      if (hasEnded(task.state)) ended += 1;
      if (task.state === 'failed' || task.state === 'lost' || task.state === 'timed-out') failed += 1;
      if (task.state === 'claimed' || task.state === 'running') running.push(task);
    }
    const parts = [
      `${ended}/${tasks.length} tasks ended${failed === 0 ? '' : ` (${failed} failed)`}`,
      ...(running.length === 0 ? [] : [`${running.length} running`]),
      ...this.#left(ended, tasks.length, now),
    ];
    const text = parts.join(', ');
    const names = running.map((task) => this.#facts.nameOf(task)).join(' ');
    const whole = names === '' ? text : `${text}: ${names}`;
    return whole.length <= columns ? whole : text.slice(0, columns);
  }

  /** By what the tasks have taken that ended since the scheduler began. */
  #left(ended: number, all: number, now: number): string[] {
    const ends = ended - this.#before;
    if (ends < MIN_ENDS || ended === all) return [];
    const seconds = ((now - this.#facts.begunAt) / 1000 / ends) * (all - ended);
    return [`about ${durationText(Math.ceil(seconds))} left`];
  }
}
