/** Tasks that are to run as the jobs of Slurm that they become. */
import type { BatchSpec, JobSpec } from '../../model/spec.ts';
import type { Task } from '../../model/task.ts';
import { jobOrder } from './job-order.ts';
import { keepsNumbers } from './numbering.ts';
import type { Piece, PieceTask, Wait } from './piece.ts';
import { type WaitFacts, waitsOf } from './waits.ts';

interface PlanFacts {
  readonly batch: string;
  /** Distinguishes the names from those of all other batches. */
  readonly key: string;
  readonly maxArraySize: number;
  readonly spec: BatchSpec;
  /** Of the whole batch, by their ids. */
  readonly tasks: readonly Task[];
  /** Pieces of the batch so far. */
  readonly earlier: readonly Pick<Piece, 'number' | 'tasks'>[];
}

/** In the order of their submission. `ids`: the tasks that they have. Throws a FailureError (usage) for what Slurm cannot do. */
export function planPieces(facts: PlanFacts, ids: ReadonlySet<number>): Piece[] {
  const { spec, tasks, earlier } = facts;
  const latest = new Map(earlier.flatMap((piece) => piece.tasks.map(({ task }) => [task, piece.number])));
  const byJob = Map.groupBy(tasks, ({ job }) => job);
  const numbers = new Map(spec.jobs.map(({ name }, index) => [name, index]));
  const waitFacts: WaitFacts = {
    tasksOf: (name) => byJob.get(numbers.get(name) ?? -1) ?? [],
    pieceOf: (task) => latest.get(task) ?? null,
  };
  const pieces: Piece[] = [];
  for (const index of jobOrder(spec)) {
    const job = spec.jobs[index];
    const wanted = (byJob.get(index) ?? []).filter(({ id }) => ids.has(id));
    if (job === undefined || wanted.length === 0) continue;
    let former: number | null = null;
    const size = keepsNumbers(job, facts.maxArraySize) ? null : facts.maxArraySize;
    for (const { group, waits } of groupsOf(job, wanted, size, waitFacts)) {
      const number = Math.max(0, ...earlier.map((piece) => piece.number)) + pieces.length + 1;
      pieces.push({
        number,
        name: `${facts.batch}.${job.name}.${number}-${facts.key}`,
        job: index,
        tasks: group,
        before: Math.max(...group.map(({ task }) => tasks[task]?.attempt ?? 0)),
        waits: withLimit(waits, job, former),
      });
      for (const { task } of group) latest.set(task, number);
      former = number;
    }
  }
  return pieces;
}

interface Group {
  readonly group: readonly PieceTask[];
  readonly waits: readonly Wait[];
}

/** Of one job. `size`: tasks that Slurm can count; null: all keep their own numbers. */
function groupsOf(job: JobSpec, wanted: readonly Task[], size: number | null, facts: WaitFacts): Group[] {
  const groups = new Map<string, { readonly group: PieceTask[]; readonly waits: readonly Wait[] }>();
  for (const { id, position } of wanted) {
    const chunk = size === null ? 0 : Math.floor(position / size);
    const ofTask = job.dependencies.some(({ each }) => each) ? waitsOf(job, [position], facts) : [];
    const key = JSON.stringify([chunk, ofTask]);
    const known = groups.get(key) ?? { group: [], waits: waitsOf(job, [position], facts) };
    known.group.push({ task: id, index: indexOf(job, position, size) });
    groups.set(key, known);
  }
  return [...groups.values()];
}

function indexOf({ array }: JobSpec, position: number, size: number | null): number | null {
  if (array === null) return null;
  return size === null ? (array.tasks[position]?.index ?? 0) : position % size;
}

/** Slurm counts the limit of an array for each of its jobs, which therefore run one after another. */
function withLimit(waits: readonly Wait[], { array }: JobSpec, former: number | null): readonly Wait[] {
  if (former === null || array === null || array.maxParallel === null) return waits;
  return [...waits, { kind: 'afterany', pieces: [former] }];
}
