/** Cuts a hostfile line into words without losing where they stood. */

export interface Token {
  readonly text: string;
  /** From 0, in characters of the line. */
  readonly offset: number;
}

/** Words and `=` signs up to a `#`; blanks around `=` do not matter, as in Open MPI's hostfiles. */
export function tokenize(line: string): Token[] {
  const comment = line.indexOf('#');
  const content = comment === -1 ? line : line.slice(0, comment);
  return Array.from(content.matchAll(/=|[^\s=]+/gu), (match) => ({ text: match[0], offset: match.index }));
}

/** The parts of `text` between commas, blanks around them removed; an empty part is kept, with its place. */
export function splitAtCommas(text: string): Token[] {
  let offset = 0;
  return text.split(',').map((part) => {
    const token = { text: part.trim(), offset: offset + part.length - part.trimStart().length };
    offset += part.length + 1;
    return token;
  });
}
