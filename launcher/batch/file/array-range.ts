/** Ranges of numbers in arrays: Slurm's `0-15`, `0-30:2`, `1,3,7`, and `1..8` for values. */
import type { Source } from './source.ts';
import type { Scalar, Span } from './item.ts';

/** Tasks of an array, and of all arrays of a file. */
export const maximumTasks = 100_000;

const maximumIndex = 9_999_999;

interface Indexes {
  /** Ascending. */
  readonly indexes: readonly number[];
  readonly maxParallel: number | null;
}

/** Throws a FailureError (usage) with the place in the text. */
export function parseIndexes(scalar: Scalar, source: Source): Indexes {
  const [, list = '', parallel] = /^([^%]*)(?:%(.*))?$/su.exec(scalar.text) ?? [];
  if (parallel !== undefined && !/^[1-9][0-9]{0,5}$/u.test(parallel)) {
    const remedy = 'write how many tasks may run at once: 0-15%4';
    throw source.mistake(source.within(scalar, `%${parallel}`), `"${parallel}" after % is no number of tasks`, remedy);
  }
  const indexes = new Set<number>();
  for (const part of list.split(',')) {
    const { first, last, step } = parsePart(part, scalar, source);
    if (Math.floor((last - first) / step) + 1 + indexes.size > maximumTasks) throw tooMany(scalar, source);
    for (let index = first; index <= last; index += step) indexes.add(index);
  }
  return {
    indexes: [...indexes].sort((one, other) => one - other),
    maxParallel: parallel === undefined ? null : Number(parallel),
  };
}

interface Part {
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

function parsePart(part: string, scalar: Scalar, source: Source): Part {
  const word = part.trim();
  const at = () => source.within(scalar, word);
  const [, from, to = from, by = '1'] = /^([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([0-9]{1,9}))?$/u.exec(word) ?? [];
  const parts = { first: Number(from), last: Number(to), step: Number(by) };
  if (from === undefined || (by !== '1' && from === to && !word.includes('-'))) {
    const shown = word === '' ? 'a number is missing' : `"${word}" is no range of numbers`;
    throw source.mistake(at(), shown, 'write a range such as 0-15, 0-30:2 or 1,3,7, and a limit behind it: 0-15%4');
  }
  if (parts.step === 0) throw source.mistake(at(), 'the step is 0', `write ${from}-${to}:1`);
  if (parts.first > parts.last) throw source.mistake(at(), `${word} runs backwards`, `write ${to}-${from}`);
  if (parts.last > maximumIndex) {
    throw source.mistake(at(), `the number ${parts.last} is too large`, `at most ${maximumIndex} is possible`);
  }
  return parts;
}

/** `1..8`, `0..30:5` as texts; null for a text that is no such range. */
export function parseValueRange(scalar: Scalar, source: Source): string[] | null {
  const [, from, to, by = '1'] = /^(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?::([0-9]{1,9}))?$/u.exec(scalar.text) ?? [];
  if (from === undefined || to === undefined) return null;
  const [first, last, step] = [Number(from), Number(to), Number(by)];
  if (step === 0) throw source.mistake(scalar, 'the step is 0', `write ${from}..${to}`);
  if (first > last) throw source.mistake(scalar, `${scalar.text} runs backwards`, `write ${to}..${from}`);
  const count = Math.floor((last - first) / step) + 1;
  if (count > maximumTasks) throw tooMany(scalar, source);
  return Array.from({ length: count }, (_, index) => String(first + index * step));
}

export function tooMany(span: Span, source: Source, count?: number): Error {
  const message =
    count === undefined ? `the array has more than ${maximumTasks} tasks` : `the array has ${count} tasks`;
  return source.mistake(span, message, `at most ${maximumTasks} are possible; look for a digit too many`);
}
