/** `defaults:` below every job. */
import type { Entry, Mapping } from './item.ts';
import { entryOf, mapOf } from './item.ts';
import type { Source } from './source.ts';

/** Keys that say the same in two ways: a job that has one of them takes none of them from the defaults. */
const oneOfThem: readonly (readonly string[])[] = [
  ['command', 'commands'],
  ['gpus', 'gpus_per_node', 'gpus_per_task'],
];

/** A job with the defaults' keys that it lacks. `key:` without a value leaves a default out. */
export function withDefaults(job: Mapping, defaults: Mapping | null, source: Source): Mapping {
  const own = job.entries.filter(({ value }) => value.type !== 'scalar' || value.value !== null);
  for (const { key, written, at } of job.entries) {
    if (own.some((entry) => entry.key === key)) continue;
    if (defaults !== null && entryOf(defaults, key) !== null) continue;
    throw source.mistake(at, `"${written}" has no value`, 'write a value, or leave the key out');
  }
  if (defaults === null) return job;
  const added = defaults.entries.filter(({ key }) => !isSaid(key, job));
  return { ...job, entries: [...own.map((entry) => merged(entry, defaults)), ...added] };
}

function isSaid(key: string, job: Mapping): boolean {
  const same = oneOfThem.find((keys) => keys.includes(key)) ?? [key];
  return same.some((one) => entryOf(job, one) !== null);
}

/** Variables by their names; names of variables that are passed on add up. */
function merged(entry: Entry, defaults: Mapping): Entry {
  const { key, value } = entry;
  const below = mapOf(defaults, key);
  if (key === 'env' && value.type === 'map' && below !== null) {
    const own = new Set(value.entries.map((one) => one.key));
    const added = below.entries.filter((one) => !own.has(one.key));
    return { ...entry, value: { ...value, entries: [...added, ...value.entries] } };
  }
  const other = entryOf(defaults, key)?.value;
  if (key === 'env_from' && value.type === 'list' && other?.type === 'list') {
    return { ...entry, value: { ...value, items: [...other.items, ...value.items] } };
  }
  return entry;
}
