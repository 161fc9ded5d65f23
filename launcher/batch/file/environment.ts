/** Environment variables: a map, a list or a text as in `--export=A=1,TOKEN`. */
import type { FailureError } from '../../model/failure-error.ts';
import {
  entryOf,
  itemOf,
  mapOf,
  scalarsOf,
  type Entry,
  type Item,
  type Mapping,
  type Scalar,
  type Span,
} from './item.ts';
import type { Source } from './source.ts';

const namePattern = /^[A-Za-z_][A-Za-z0-9_]*$/u;

/** The job with `env` as a map, and the names without a value in `env_from`, which becomes a list. */
export function withVariables(job: Mapping, source: Source): Mapping {
  const env = entryOf(job, 'env');
  const from = entryOf(job, 'env_from');
  const words = env === null || env.value.type === 'map' ? [] : wordsOf(env.value, source);
  const isText = from !== null && from.value.type === 'scalar' && typeof from.value.value === 'string';
  if (words.length === 0 && !isText) return job;

  const entries = new Map<string, Entry>();
  const passed: Item[] = isText
    ? wordsOf(from.value, source)
    : from?.value.type === 'list'
      ? [...from.value.items]
      : [];
  for (const word of words) {
    const equals = word.text.indexOf('=');
    if (equals === -1) passed.push(word);
    else {
      const entry = variableOf(word, equals);
      const former = entries.get(entry.key);
      if (former !== undefined) {
        throw source.mistake(word, `"${entry.key}" has a value already`, 'leave one of them');
      }
      entries.set(entry.key, entry);
    }
  }
  const others = job.entries.filter(({ key, value }) => key !== 'env_from' && (key !== 'env' || value.type === 'map'));
  const added: Entry[] = [];
  if (env !== null && words.length > 0) {
    const { start, end } = env.value;
    added.push({ ...env, value: { type: 'map', start, end, entries: [...entries.values()] } });
  }
  const span = from?.value ?? env?.value;
  if (span !== undefined && passed.length > 0) {
    const value: Item = { type: 'list', start: span.start, end: span.end, items: passed };
    added.push({ key: 'env_from', written: (from ?? env)?.written ?? 'env_from', at: span, value });
  }
  return { ...job, entries: [...others, ...added] };
}

function variableOf(word: Scalar, equals: number): Entry {
  const text = word.text.slice(equals + 1);
  const key = word.text.slice(0, equals);
  return { key, written: key, at: word, value: { ...word, value: text, text } };
}

/** Words of a text whose places are looked for. */
const maximumPlaced = 1000;

/** The items of a list, or what commas part in a text. */
function wordsOf(item: Item, source: Source): Scalar[] {
  if (item.type !== 'scalar') return [...scalarsOf(item)];
  if (typeof item.value !== 'string') return [];
  const parts = item.text.split(',');
  return parts.map((part): Scalar => {
    const text = part.trim();
    // Each is searched from the beginning.
    const span = parts.length > maximumPlaced ? item : source.within(item, text);
    if (/^(ALL|NONE|NIL)$/u.test(text)) {
      const remedy = 'write the names of the variables that are passed on: env_from: [TOKEN]';
      throw source.mistake(span, `"${text}" of sbatch has no meaning here`, remedy);
    }
    return { type: 'scalar', value: text, text, start: span.start, end: span.end };
  });
}

interface Variables {
  readonly environment: Readonly<Record<string, string>>;
  readonly passed: readonly string[];
}

/** The values as written. Throws a FailureError (usage) for what is no variable. */
export function readVariables(job: Mapping, source: Source): Variables {
  const entries = mapOf(job, 'env')?.entries ?? [];
  for (const { key, at, value } of entries) {
    if (!namePattern.test(key)) throw noVariable(key, at, source);
    if (value.type === 'scalar' && value.text.includes('\0')) {
      throw source.mistake(value, `"${key}" holds a null character`, 'no variable can hold one');
    }
  }
  const passed = scalarsOf(itemOf(job, 'env_from'));
  for (const name of passed) if (!namePattern.test(name.text)) throw noVariable(name.text, name, source);
  const own = new Set(entries.map(({ key }) => key));
  return {
    environment: Object.fromEntries(entries.map(({ key, value }) => [key, value.type === 'scalar' ? value.text : ''])),
    passed: [...new Set(passed.map(({ text }) => text))].filter((name) => !own.has(name)),
  };
}

function noVariable(key: string, at: Span, source: Source): FailureError {
  const remedy = 'a name has letters, digits and underscores and does not begin with a digit';
  return source.mistake(at, `"${key}" is no name of a variable`, remedy);
}
