/** Arrays by words and their values: every value of one word with every value of the others. */
import { meant, type Source } from './source.ts';
import { itemOf, scalarsOf, type Entry, type Item, type Mapping, type Scalar } from './item.ts';
import type { ArrayTask } from '../model/spec.ts';
import { maximumTasks, parseValueRange, tooMany } from './array-range.ts';
import { arrayEntries } from './schema.ts';

interface Word {
  readonly name: string;
  readonly values: readonly string[];
}

/** The words of each may be others, and are compared with every task. */
const maximumExclusions = 1000;

const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/u;

/** Words by which programs and texts know a task already. */
const taken = /^(?:index|job_id|task_.*)$/iu;

/**
 * The first word varies slowest. The number of a task is its place among all products, so that an exclusion leaves the other numbers alone.
 * Throws a FailureError (usage).
 */
export function productOf(array: Mapping, source: Source): ArrayTask[] {
  const words = wordsOf(array, source);
  const excluded = exclusionsOf(array, words, source);
  const count = words.reduce((product, { values }) => product * values.length, 1);
  if (count > maximumTasks) throw tooMany(array, source, count);
  const tasks: ArrayTask[] = [];
  for (let index = 0; index < count; index += 1) {
    const task = { index, values: valuesAt(index, words) };
    if (!excluded.some((one) => one.combinations.has(combinationOf(one.names, task.values)))) tasks.push(task);
  }
  if (tasks.length > 0) return tasks;
  throw source.mistake(itemOf(array, 'exclude') ?? array, 'exclude leaves no task', 'exclude fewer values');
}

function valuesAt(index: number, words: readonly Word[]): Record<string, string> {
  const values: [string, string][] = [];
  let rest = index;
  for (const { name, values: all } of words.toReversed()) {
    values.unshift([name, all[rest % all.length] ?? '']);
    rest = Math.floor(rest / all.length);
  }
  return Object.fromEntries(values);
}

function wordsOf(array: Mapping, source: Source): Word[] {
  const entries = array.entries.filter(({ key }) => !Object.hasOwn(arrayEntries, key));
  if (entries.length === 0)
    throw source.mistake(array, 'the array has no words', 'write { lr: [0.1, 0.03], seed: 1..3 }');
  const seen = new Map<string, Entry>();
  return entries.map((entry) => {
    const { key: name, at, value } = entry;
    if (!namePattern.test(name)) {
      const remedy = 'a word of an array has letters, digits and underscores and does not begin with a digit';
      throw source.mistake(at, `"${name}" is no word of an array`, remedy);
    }
    if (taken.test(name)) throw source.mistake(at, `"${name}" means something in every array`, 'choose another word');
    const former = seen.get(name.toLowerCase());
    if (former !== undefined) {
      const remedy = 'choose other words: their variables are in capitals';
      throw source.mistake(at, `"${name}" and "${former.key}" differ in capitals alone`, remedy);
    }
    seen.set(name.toLowerCase(), entry);
    return { name, values: valuesOf(value, source) };
  });
}

function valuesOf(item: Item, source: Source): readonly string[] {
  if (item.type === 'scalar') return parseValueRange(item, source) ?? [item.text];
  const seen = new Map<string, Scalar>();
  for (const scalar of scalarsOf(item)) {
    if (seen.has(scalar.text)) throw source.mistake(scalar, `"${scalar.text}" appears twice`, 'leave one of them');
    if (scalar.text.includes('\0')) throw source.mistake(scalar, 'the value holds a null character', 'remove it');
    seen.set(scalar.text, scalar);
  }
  return [...seen.keys()];
}

/** Exclusions that name the same words. */
interface Exclusion {
  readonly names: readonly string[];
  readonly combinations: Set<string>;
}

function combinationOf(names: readonly string[], values: Readonly<Record<string, string>>): string {
  return names.map((name) => JSON.stringify(values[name])).join();
}

/** Throws a FailureError (usage) for words and values that no task has. */
function exclusionsOf(array: Mapping, words: readonly Word[], source: Source): Exclusion[] {
  const list = itemOf(array, 'exclude');
  const items = list?.type === 'list' ? list.items : [];
  if (list !== null && items.length > maximumExclusions) {
    const message = `exclude has ${items.length} maps in it`;
    throw source.mistake(list, message, `write at most ${maximumExclusions}, or arrays of fewer values`);
  }
  const exclusions = new Map<string, Exclusion>();
  for (const map of items) {
    if (map.type !== 'map')
      throw source.mistake(map, `exclude has ${source.shown(map)} in it`, 'write [{ lr: 0.1, seed: 2 }]');
    if (map.entries.length === 0) throw source.mistake(map, 'an empty map excludes every task', 'write { lr: 0.1 }');
    const values = Object.fromEntries(map.entries.map((entry) => [entry.key, excludedValue(entry, words, source)]));
    const names = Object.keys(values).toSorted();
    const known = exclusions.get(names.join()) ?? { names, combinations: new Set() };
    known.combinations.add(combinationOf(names, values));
    exclusions.set(names.join(), known);
  }
  return [...exclusions.values()];
}

function excludedValue({ key, at, value }: Entry, words: readonly Word[], source: Source): string {
  const word = words.find(({ name }) => name === key);
  if (word === undefined) {
    const names = words.map(({ name }) => name);
    throw source.mistake(at, `"${key}" is no word of the array`, meant(key, names));
  }
  const text = value.type === 'scalar' ? value.text : '';
  const number = Number(text);
  // 0.10 excludes 0.1: both are written by hand, and in different places.
  const found = word.values.find((one) => one === text || (text.trim() !== '' && Number(one) === number));
  if (found !== undefined) return found;
  throw source.mistake(
    value,
    `no value of "${key}" is ${source.shown(value)}`,
    meant(text, word.values.slice(0, 20), 'values'),
  );
}
