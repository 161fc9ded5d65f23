/** Cuts hostfile lines and host lists into words without losing where they stood. */

export interface Token {
  readonly text: string;
  /** From 0, in characters of the line. */
  readonly offset: number;
}

/** Words and `=` signs up to a `#`; blanks around `=` do not matter, and a word may stand in quotes, as in Open MPI's hostfiles. */
export function tokenize(line: string): Token[] {
  const comment = line.indexOf('#');
  const content = comment === -1 ? line : line.slice(0, comment);
  return Array.from(content.matchAll(/=|"([^"]*)"|'([^']*)'|[^\s=]+/gu), (match) => {
    const quoted = match[1] ?? match[2];
    return { text: quoted ?? match[0], offset: match.index + (quoted === undefined ? 0 : 1) };
  });
}

/** What is left of `token` from its character `start` on. */
export function tail(token: Token, start: number): Token {
  return { text: token.text.slice(start), offset: token.offset + start };
}

/** What lies before character `end` of `token`. */
export function head(token: Token, end: number): Token {
  return { text: token.text.slice(0, end), offset: token.offset };
}

/** The parts of `token` between separators that stand outside brackets, blanks around them removed; an empty part is kept. */
export function splitOutsideBrackets(token: Token, separator: string): Token[] {
  const parts: Token[] = [];
  let start = 0;
  for (;;) {
    const end = indexOutsideBrackets(token.text, separator, start);
    const part = token.text.slice(start, end === -1 ? undefined : end);
    parts.push({ text: part.trim(), offset: token.offset + start + part.length - part.trimStart().length });
    if (end === -1) return parts;
    start = end + 1;
  }
}

/** The first `character` from `start` on that stands in no brackets, or -1. */
export function indexOutsideBrackets(text: string, character: string, start = 0): number {
  let inside = false;
  for (let index = start; index < text.length; index += 1) {
    const found = text[index];
    if (found === '[') inside = true;
    else if (found === ']') inside = false;
    else if (!inside && found === character) return index;
  }
  return -1;
}
