/** Values of a batch file that know where they stand. */

/** Offsets count UTF-16 units from the beginning of the text; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Scalar extends Span {
  readonly type: 'scalar';
  readonly value: string | number | boolean | null;
  /** As written where it stands without quotes: `1.10` stays `1.10`. */
  readonly text: string;
}

interface List extends Span {
  readonly type: 'list';
  readonly items: readonly Item[];
}

export interface Entry {
  readonly key: string;
  /** The key as written. */
  readonly written: string;
  readonly at: Span;
  readonly value: Item;
}

export interface Mapping extends Span {
  readonly type: 'map';
  readonly entries: readonly Entry[];
}

export type Item = Scalar | List | Mapping;

type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };

export function entryOf(map: Mapping, key: string): Entry | null {
  return map.entries.find((entry) => entry.key === key) ?? null;
}

/** Value of a key; null if the map lacks it. */
export function itemOf(map: Mapping, key: string): Item | null {
  return entryOf(map, key)?.value ?? null;
}

/** Value of a key that holds a map; null if it holds anything else. */
export function mapOf(map: Mapping, key: string): Mapping | null {
  const item = itemOf(map, key);
  return item?.type === 'map' ? item : null;
}

/** Scalars of a list, or the scalar itself as a list of one. */
export function scalarsOf(item: Item | null): readonly Scalar[] {
  if (item === null) return [];
  if (item.type === 'list') return item.items.filter((one) => one.type === 'scalar');
  return item.type === 'scalar' ? [item] : [];
}

/** Every scalar below an item, keys excepted. */
export function* scalarsBelow(item: Item): Generator<Scalar> {
  if (item.type === 'scalar') yield item;
  else if (item.type === 'list') for (const one of item.items) yield* scalarsBelow(one);
  else for (const { value } of item.entries) yield* scalarsBelow(value);
}

/** The value without its positions. */
export function plainOf(item: Item): Plain {
  if (item.type === 'scalar') return item.value;
  if (item.type === 'list') return item.items.map(plainOf);
  return Object.fromEntries(item.entries.map(({ key, value }) => [key, plainOf(value)]));
}
