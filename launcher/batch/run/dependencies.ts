/**
 * Which tasks may run, as far as others are concerned. A condition that can no longer come true skips the tasks that have it, and what depends on
 * those, at once: nothing waits for ever.
 */
import type { BatchSpec, Dependency } from '../model/spec.ts';
import { hasEnded } from '../model/states.ts';
import type { Task } from '../model/task.ts';

type Standing = 'met' | 'open' | 'impossible';

/** Of the tasks that a condition looks at. */
interface Tally {
  readonly all: number;
  readonly ended: number;
  readonly well: number;
  readonly begun: number;
}

type Watched = Pick<Task, 'state' | 'startedAt'>;

export class Dependencies {
  readonly #spec: BatchSpec;
  readonly #tasks: (id: number) => Task;
  /** Id of the first task of each job. */
  readonly #first: readonly number[];
  readonly #jobs: ReadonlyMap<string, number>;
  /** Job → those that depend on it. */
  readonly #dependents: ReadonlyMap<number, readonly number[]>;
  readonly #tallies: Tally[];

  /** `tasks`: as `changed` was last told. */
  constructor(spec: BatchSpec, tasks: (id: number) => Task) {
    this.#spec = spec;
    this.#tasks = tasks;
    this.#jobs = new Map(spec.jobs.map(({ name }, index) => [name, index]));
    const first: number[] = [];
    let next = 0;
    for (const { array } of spec.jobs) {
      first.push(next);
      next += array?.tasks.length ?? 1;
    }
    this.#first = first;
    const dependents = new Map<number, number[]>();
    for (const [index, { dependencies }] of spec.jobs.entries()) {
      for (const { job } of dependencies) {
        const on = this.#jobs.get(job) ?? -1;
        dependents.set(on, [...(dependents.get(on) ?? []), index]);
      }
    }
    this.#dependents = dependents;
    this.#tallies = spec.jobs.map((_, job) => this.tasksOf(job).map(tasks).reduce(add, NONE));
  }

  /** Ids of a job's tasks. */
  tasksOf(job: number): readonly number[] {
    const first = this.#first[job] ?? 0;
    return Array.from({ length: this.#spec.jobs[job]?.array?.tasks.length ?? 1 }, (_, position) => first + position);
  }

  /** `met`: the task may run; else what it waits for, or why it never will. */
  standingOf(task: Task): { readonly standing: Standing; readonly words: string } {
    const dependencies = this.#spec.jobs[task.job]?.dependencies ?? [];
    let open: string | null = null;
    for (const one of dependencies) {
      const standing = this.#standing(one, task);
      if (standing === 'impossible') return { standing, words: impossible(one) };
      if (standing === 'open') open ??= `after ${one.job}`;
    }
    return open === null ? { standing: 'met', words: '' } : { standing: 'open', words: open };
  }

  /** A task of a job changes. Returns the ids of those whose standing may change with it. */
  changed({ job, position }: Task, before: Watched, after: Watched): readonly number[] {
    const old = this.#tallies[job] ?? NONE;
    const tally = add(minus(old, before), after);
    this.#tallies[job] = tally;
    const isDecisive = signsOf(old) !== signsOf(tally);
    return (this.#dependents.get(job) ?? []).flatMap((dependent) => {
      if (isDecisive) return this.tasksOf(dependent);
      return this.#goesByTask(dependent) ? [(this.#first[dependent] ?? 0) + position] : [];
    });
  }

  #goesByTask(job: number): boolean {
    return this.#spec.jobs[job]?.dependencies.some(({ each }) => each) === true;
  }

  #standing({ job, condition, each }: Dependency, task: Task): Standing {
    const on = this.#jobs.get(job) ?? -1;
    const own = each ? add(NONE, this.#tasks((this.#first[on] ?? 0) + task.position)) : this.#tallies[on];
    const { all, ended, well, begun } = own ?? NONE;
    const badly = ended - well;
    switch (condition) {
      case 'any':
        return ended === all ? 'met' : 'open';
      case 'ok':
        return badly > 0 ? 'impossible' : metIf(well === all);
      case 'notok':
        return well === all ? 'impossible' : metIf(badly > 0 && ended === all);
      case 'start':
        return begun > 0 ? 'met' : metIf(false, ended === all);
      default:
        return condition satisfies never;
    }
  }
}

const NONE: Tally = { all: 0, ended: 0, well: 0, begun: 0 };

function add(tally: Tally, task: Watched): Tally {
  return combine(tally, countsOf(task), 1);
}

function minus(tally: Tally, task: Watched): Tally {
  return combine(tally, countsOf(task), -1);
}

function combine(tally: Tally, one: Tally, sign: 1 | -1): Tally {
  return {
    all: tally.all + sign * one.all,
    ended: tally.ended + sign * one.ended,
    well: tally.well + sign * one.well,
    begun: tally.begun + sign * one.begun,
  };
}

function countsOf({ state, startedAt }: Watched): Tally {
  return {
    all: 1,
    ended: hasEnded(state) ? 1 : 0,
    well: state === 'succeeded' ? 1 : 0,
    begun: startedAt === null ? 0 : 1,
  };
}

/** What conditions ask of a job: have all ended, has any badly, has any begun. */
function signsOf({ all, ended, well, begun }: Tally): string {
  return `${ended === all} ${ended > well} ${begun > 0}`;
}

function metIf(isMet: boolean, isImpossible = false): Standing {
  if (isMet) return 'met';
  return isImpossible ? 'impossible' : 'open';
}

function impossible({ job, condition }: Dependency): string {
  switch (condition) {
    case 'ok':
      return `${job} did not succeed`;
    case 'notok':
      return `${job} succeeded`;
    case 'any':
    case 'start':
      return `${job} never started`;
    default:
      return condition satisfies never;
  }
}
