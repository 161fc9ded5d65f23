/** Which numbers the tasks of arrays have in Slurm. */
import type { ArraySpec, BatchSpec } from '../../model/spec.ts';

/**
 * By job: true where tasks keep their own numbers in Slurm. They do not where Slurm cannot count so far (MaxArraySize), nor where `each` joins
 * two arrays whose numbers differ, as Slurm joins tasks by number and the file joins them by position. There they are counted from 0.
 */
export function ownNumbers({ jobs }: Pick<BatchSpec, 'jobs'>, maxArraySize: number): readonly boolean[] {
  const own = jobs.map(({ array }) => (array?.tasks.at(-1)?.index ?? 0) < maxArraySize);
  const pairs = jobs.flatMap(({ dependencies, array }, index) =>
    dependencies
      .filter(({ each }) => each)
      .map(({ job }) => {
        const other = jobs.findIndex(({ name }) => name === job);
        return { index, other, alike: numbersOf(array) === numbersOf(jobs[other]?.array ?? null) };
      }),
  );
  for (let before = -1; before !== own.filter(Boolean).length; ) {
    before = own.filter(Boolean).length;
    for (const { index, other, alike } of pairs) {
      const both = alike && own[index] === true && own[other] === true;
      [own[index], own[other]] = [both, both];
    }
  }
  return own;
}

function numbersOf(array: ArraySpec | null): string {
  return array?.tasks.map(({ index }) => index).join() ?? '';
}
