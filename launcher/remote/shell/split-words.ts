/** A command line → its words, as a POSIX shell cuts them; nothing is expanded. */

/** Quoted parts, escaped characters, and what stands between. */
const PART = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)|(\s+)/gy;

/** Null: a quote is not closed, or a backslash stands at the end. */
export function splitWords(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let end = 0;
  for (const [part, single, double, escaped, plain, blank] of line.matchAll(PART)) {
    end += part.length;
    if (blank !== undefined) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    // Between double quotes a backslash is one, unless before a character that would mean something there.
    word = (word ?? '') + (single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? plain ?? '');
  }
  if (end !== line.length) return null;
  return word === null ? words : [...words, word];
}
