/** Words in a batch script, so that sbatch and the shell read them as they are. */

/** As sbatch reads a word of an #SBATCH line: quotes hold what has blanks together. */
export function directiveWord(word: string): string {
  if (!/[\s#"'\\]/.test(word)) return word;
  return `"${word.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
}

export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
