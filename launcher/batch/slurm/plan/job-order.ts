import type { BatchSpec } from '../../model/spec.ts';

/** Indexes of the jobs, each behind those that it depends on, else as in the file. The check of the file has found no circle. */
export function jobOrder({ jobs }: Pick<BatchSpec, 'jobs'>): readonly number[] {
  const numbers = new Map(jobs.map(({ name }, index) => [name, index]));
  const order = new Set<number>();
  const visit = (index: number): void => {
    if (order.has(index)) return;
    for (const { job } of jobs[index]?.dependencies ?? []) visit(numbers.get(job) ?? index);
    order.add(index);
  };
  for (const index of jobs.keys()) visit(index);
  return [...order];
}
