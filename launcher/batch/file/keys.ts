/** Keys by the one word that they are known by here: Slurm's long options are read too, with dashes or underscores. */
import { nearest } from '../../text/nearest.ts';
import { demandEntries, gpuEntries, resourcesEntries } from './demand-schema.ts';
import { elsewhere } from './elsewhere.ts';
import type { Entry, Item, Mapping } from './item.ts';
import { secondKey } from './parse-yaml.ts';
import { arrayEntries, batchEntries, jobEntries, retryEntries } from './schema.ts';
import type { Source } from './source.ts';

/** Other words for a key; with dashes they are known as well. */
export const aliases: Readonly<Record<string, readonly string[]>> = {
  name: ['job_name'],
  time_limit: ['time', 'max_duration'],
  hosts: ['nodelist'],
  working_dir: ['chdir'],
  env: ['export'],
  after: ['dependency'],
  requeue: ['preemptible'],
};

interface Keys {
  readonly known: readonly string[];
  /** What the map describes, for messages. */
  readonly what: string;
  /** Keys below it whose maps have known keys in turn. */
  readonly below: Readonly<Record<string, Keys>>;
  /** The map has keys of the user's own as well. */
  readonly free?: true;
}

const gpuKeys: Keys = { known: Object.keys(gpuEntries), what: 'gpu', below: {} };

const jobBelow = {
  resources: { known: Object.keys(resourcesEntries), what: 'resources', below: { gpu: gpuKeys } },
  retry: { known: Object.keys(retryEntries), what: 'retry', below: {} },
  array: { known: Object.keys(arrayEntries), what: 'array', below: {}, free: true },
} as const satisfies Record<string, Keys>;

const jobKeys: Keys = { known: Object.keys(jobEntries), what: 'a job', below: jobBelow };
const defaultsKeys: Keys = {
  known: jobKeys.known.filter((key) => key !== 'name'),
  what: 'defaults',
  below: jobBelow,
};

const batchKeys: Keys = {
  known: Object.keys(batchEntries),
  what: 'a batch file',
  below: { defaults: defaultsKeys, jobs: jobKeys },
};

/** The file's values with every key by its one word. Throws a FailureError (usage) for a key that is not known, or appears twice by two words. */
export function withKnownKeys(item: Item, source: Source): Item {
  return canonical(item, batchKeys, source);
}

function canonical(item: Item, keys: Keys, source: Source): Item {
  if (item.type === 'scalar') return item;
  if (item.type === 'list') return { ...item, items: item.items.map((one) => canonical(one, keys, source)) };
  const entries = new Map<string, Entry>();
  for (const entry of item.entries) {
    const key = canonicalKey(entry.key, keys);
    if (key === null) throw unknownKey(entry, keys, source);
    const former = entries.get(key);
    if (former !== undefined) throw secondKey(former, entry.at, source);
    const below = keys.below[key];
    // A map of jobs is one mistake; the names in it are no further ones.
    const isList = below !== undefined && (below !== jobKeys || entry.value.type === 'list');
    const value = isList ? canonical(entry.value, below, source) : entry.value;
    entries.set(key, { ...entry, key, value });
  }
  return { ...item, entries: [...entries.values()] } satisfies Mapping;
}

function canonicalKey(written: string, { known, free }: Keys): string | null {
  const word = written.replaceAll('-', '_');
  const key = known.find((one) => one === word || aliases[one]?.includes(word) === true);
  return key ?? (free === true ? written : null);
}

function unknownKey({ written, at }: Entry, keys: Keys, source: Source): Error {
  const message = `"${written}" is no key of ${keys.what}`;
  return source.mistake(at, message, remedyFor(written.toLowerCase().replaceAll('-', '_'), keys));
}

function remedyFor(word: string, keys: Keys): string {
  if (word === '<<') return 'write defaults: for what all jobs share; an alias stands for a whole value';
  const advice = keys === jobKeys || keys === defaultsKeys ? elsewhere(word) : null;
  if (advice !== null) return advice;
  const words = keys.known.flatMap((key) => [key, ...(aliases[key] ?? [])]);
  const guess = nearest(word, words);
  if (guess !== null) return `did you mean "${guess}"?`;
  const owner = keys === batchKeys ? ownerOf(word) : null;
  return owner ?? `known: ${keys.known.join(', ')}`;
}

/** A job's key that stands where a batch's are expected. */
function ownerOf(word: string): string | null {
  const all = [...jobKeys.known, ...Object.keys(demandEntries)];
  const known = all.some((key) => key === word || aliases[key]?.includes(word) === true);
  return known ? `"${word}" is a key of a job: write it there, or below defaults: for all jobs` : null;
}
