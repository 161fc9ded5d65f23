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
  /** What to write in place of a list. */
  readonly wanted: string;
  /** Keys below it whose maps have known keys in turn. */
  readonly below: Readonly<Record<string, Keys>>;
  /** The map has keys of the user's own as well. */
  readonly free?: true;
}

const gpuKeys: Keys = { known: Object.keys(gpuEntries), what: 'gpu', wanted: 'write gpu: H100:8', below: {} };

const jobBelow = {
  resources: {
    known: Object.keys(resourcesEntries),
    what: 'resources',
    wanted: 'write a map: { gpu: H100:8, memory: 200GB.., cpu: 16.. }',
    below: { gpu: gpuKeys },
  },
  retry: {
    known: Object.keys(retryEntries),
    what: 'retry',
    wanted: 'write a map: { on_events: [error, interruption], max_retries: 2 }',
    below: {},
  },
  array: {
    known: Object.keys(arrayEntries),
    what: 'array',
    wanted: 'write a range such as "0-15", numbers in a text, "1,3,7", or a map: { lr: [0.1, 0.03] }',
    below: {},
    free: true,
  },
} as const satisfies Record<string, Keys>;

const jobKeys: Keys = {
  known: Object.keys(jobEntries),
  what: 'a job',
  wanted: 'write a map: { name: prep, command: python3 prep.py }',
  below: jobBelow,
};
const defaultsKeys: Keys = {
  known: jobKeys.known.filter((key) => key !== 'name'),
  what: 'defaults',
  wanted: 'write a map, such as { time_limit: 4h }',
  below: jobBelow,
};

const batchKeys: Keys = {
  known: Object.keys(batchEntries),
  what: 'a batch file',
  wanted: 'write a map',
  below: { defaults: defaultsKeys, jobs: jobKeys },
};

/** The file's values with every key by its one word. Throws a FailureError (usage) for a key that is not known, or appears twice by two words. */
export function withKnownKeys(file: Mapping, source: Source): Mapping {
  return canonical(file, batchKeys, source);
}

function canonical(map: Mapping, keys: Keys, source: Source): Mapping {
  const entries = new Map<string, Entry>();
  for (const entry of map.entries) {
    const key = canonicalKey(entry.key, keys);
    if (key === null) throw unknownKey(entry, keys, source);
    const former = entries.get(key);
    if (former !== undefined) throw secondKey(former, entry.at, source);
    const below = keys.below[key];
    entries.set(key, { ...entry, key, value: below === undefined ? entry.value : valueBelow(entry, below, source) });
  }
  return { ...map, entries: [...entries.values()] };
}

/** Jobs stand in a list, everything else that has keys in a map; the schema takes a list for a map. */
function valueBelow({ written, value }: Entry, keys: Keys, source: Source): Item {
  if (keys === jobKeys) {
    if (value.type !== 'list') return value;
    const items = value.items.map((item) => {
      if (item.type === 'list') throw source.mistake(item, 'the job is a list', keys.wanted);
      return item.type === 'map' ? canonical(item, keys, source) : item;
    });
    return { ...value, items };
  }
  if (value.type === 'map') return canonical(value, keys, source);
  if (value.type === 'list') throw source.mistake(value, `"${written}" is a list`, keys.wanted);
  return value;
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
