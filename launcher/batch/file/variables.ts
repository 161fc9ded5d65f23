/** Variables that are made of other variables: in no circle, and not without end. */
import { variablesIn } from './fill-in.ts';
import type { Item, Mapping } from './item.ts';
import type { Source } from './source.ts';

/** What Linux takes as one variable. */
const maximumCharacters = 131_072;

/** Variables of which one is made in turn. */
const deepest = 20;

/** Throws a FailureError (usage). */
export function checkVariables(env: Mapping, source: Source): void {
  const lengths = new Map<string, number>();
  const values = new Map(env.entries.map(({ key, value }) => [key, value]));
  for (const { key, value } of env.entries) lengthOf(key, value, []);

  function lengthOf(name: string, value: Item, above: readonly string[]): number {
    const known = lengths.get(name);
    if (known !== undefined || value.type !== 'scalar') return known ?? 0;
    const path = [...above, name];
    let length = value.text.length;
    for (const other of variablesIn(value.text)) {
      const start = path.indexOf(other);
      if (start !== -1 || path.length > deepest) {
        const circle = [...path.slice(Math.max(0, start)), other].map((one) => `env.${one}`).join(' -> ');
        const message =
          start === -1
            ? `variables are made of more than ${deepest} others`
            : `variables are made of each other: ${circle}`;
        throw source.mistake(source.within(value, `env.${other}`), message, 'write one of the values out');
      }
      const below = values.get(other);
      if (below !== undefined) length += lengthOf(other, below, path);
    }
    if (length > maximumCharacters) {
      const message = `"${name}" has more than ${maximumCharacters} characters`;
      throw source.mistake(value, message, 'write long values into a file, and its path into the variable');
    }
    lengths.set(name, length);
    return length;
  }
}
