/** Which tasks are meant by words such as `train`, `train[3]` and `train[3-5,8]`. */
import type { BatchSpec } from '../model/spec.ts';
import { usageError } from '../../model/usage-error.ts';
import { nearest } from '../../text/nearest.ts';

const WORD = /^(?<name>[a-z0-9][a-z0-9_-]*)(?:\[(?<indexes>[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)\])?$/u;

/** Ids, ascending; of all tasks for an empty word. Throws a FailureError (usage): nothing is called so. */
export function selectTasks(spec: BatchSpec, word: string): readonly number[] {
  const named = word === '' ? null : WORD.exec(word)?.groups;
  if (named === undefined)
    throw usageError(`"${word}" names no task`, 'write a job as ncclrun jobs lists it: train, train[3], train[3-5]');
  const found: number[] = [];
  let id = 0;
  for (const { name, array } of spec.jobs) {
    const count = array?.tasks.length ?? 1;
    for (let position = 0; position < count; position += 1, id += 1) {
      const index = array?.tasks[position]?.index ?? null;
      if (named === null || (named['name'] === name && isMeant(index, named['indexes']))) found.push(id);
    }
  }
  if (found.length === 0 && named !== null) throw nothingFound(spec, word, named['name'] ?? '');
  return found;
}

function isMeant(index: number | null, indexes: string | undefined): boolean {
  if (indexes === undefined) return true;
  if (index === null) return false;
  return indexes.split(',').some((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return first <= index && index <= last;
  });
}

function nothingFound({ jobs }: BatchSpec, word: string, name: string): Error {
  const job = jobs.find((one) => one.name === name);
  if (job !== undefined) {
    const last = job.array?.tasks.at(-1)?.index;
    return usageError(
      `the batch has no task "${word}"`,
      last === undefined ? `${name} is no array: write ${name}` : `${name} has tasks up to ${name}[${last}]`,
    );
  }
  const names = jobs.map((one) => one.name);
  const meant = nearest(name, names);
  return usageError(
    `the batch has no job "${name}"`,
    meant === null ? `its jobs are ${names.slice(0, 8).join(', ')}` : `did you mean ${meant}?`,
  );
}
