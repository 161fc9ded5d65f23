/** `${{ array.lr }}` in texts: names of values, and no code. `$${{` is the text `${{` itself. */

interface Reference {
  /** As written, `${{` and `}}` included. */
  readonly text: string;
  /** What stands between them; null if they are not closed. */
  readonly name: string | null;
}

const reference = /\$\$\{\{|\$\{\{([^{}]*)\}\}|\$\{\{/gu;
const escaped = '$${{';

export function referencesIn(text: string): Reference[] {
  return Array.from(text.matchAll(reference), ([whole, name]) => ({ text: whole, name: name?.trim() ?? null })).filter(
    ({ text: whole }) => whole !== escaped,
  );
}

/** Names of the variables that a text is made of. */
export function variablesIn(text: string): string[] {
  if (!text.includes('${{')) return [];
  return referencesIn(text).flatMap(({ name }) =>
    name?.startsWith('env.') === true ? [name.slice('env.'.length)] : [],
  );
}

/** The text with its references replaced; `values` by names such as `array.lr`. A name that has no value stays as it is written. */
export function fillIn(text: string, values: ReadonlyMap<string, string>): string {
  if (!text.includes('${{')) return text;
  return text.replaceAll(reference, (whole: string, name: string | undefined) => {
    if (whole === escaped) return '${{';
    return name === undefined ? whole : (values.get(name.trim()) ?? whole);
  });
}
