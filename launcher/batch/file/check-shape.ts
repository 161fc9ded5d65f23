/** The schema's complaints at their places in the file. */
import * as v from 'valibot';
import { entryOf, plainOf, type Item, type Span } from './item.ts';
import type { Source } from './source.ts';

interface Mistake {
  /** What is wanted. */
  readonly wanted: string;
  readonly path: readonly (string | number)[];
  readonly missing: boolean;
}

/** What the file says, as the schema has it. Throws a FailureError (usage) for its first mistake. */
export function checkShape<Schema extends v.GenericSchema>(
  schema: Schema,
  item: Item,
  what: string,
  source: Source,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, plainOf(item), { abortEarly: true, abortPipeEarly: true });
  if (result.success) return result.output;
  throw mistakeAt(deepest(result.issues[0]), item, what, source);
}

/** Of the alternatives that a value may be, the one that it got furthest with. */
function deepest(issue: v.BaseIssue<unknown>, above: Mistake['path'] = []): Mistake {
  const keys = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)));
  const own: Mistake = {
    wanted: issue.message,
    path: [...above, ...keys],
    missing: issue.received === 'undefined',
  };
  let best = own;
  for (const part of issue.issues ?? []) {
    const found = deepest(part, own.path);
    if (found.path.length > best.path.length) best = found;
  }
  return best;
}

function mistakeAt({ wanted, path, missing }: Mistake, root: Item, what: string, source: Source): Error {
  let item = root;
  let at: Span = root;
  let name = what;
  for (const key of path) {
    if (typeof key === 'number') {
      const below = item.type === 'list' ? item.items[key] : undefined;
      if (below === undefined) break;
      name = name === '"jobs"' ? 'the job' : name.startsWith('"') ? `a value of ${name}` : name;
      [item, at] = [below, below];
      continue;
    }
    const entry = item.type === 'map' ? entryOf(item, key) : null;
    if (entry === null) {
      const place = item.type === 'map' ? (item.entries[0]?.at ?? item) : item;
      return source.mistake(
        missing ? place : at,
        `${name} has no "${key}"`,
        missing ? (key === 'name' ? 'write name: prep' : `write ${key}:`) : wanted,
      );
    }
    [item, at, name] = [entry.value, entry.value, `"${entry.written}"`];
  }
  return source.mistake(at, `${name} ${complaint(item, source)}`, wanted);
}

function complaint(item: Item, source: Source): string {
  if (item.type === 'scalar') return item.value === null ? 'has no value' : `is ${source.shown(item)}`;
  return item.type === 'list' && item.items.length === 0 ? 'is an empty list' : `is ${source.shown(item)}`;
}
