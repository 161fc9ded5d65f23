/**
 * Names with ranges, as Slurm and pdsh write them: `node[01-04,07]`, `rack[1-2]-n[0-3]`. Leading zeros are kept: `[08-11]` is 08, 09,
 * 10, 11.
 */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import { splitOutsideBrackets, type Token } from './tokenize.ts';

/** Literal text, or the numbers of one pair of brackets. */
type Piece = string | readonly NumberRange[];

interface NumberRange {
  readonly first: number;
  readonly last: number;
  /** Digits to fill up to with zeros. */
  readonly width: number;
}

interface HostRange {
  readonly pieces: readonly Piece[];
  /** How many names it stands for. */
  readonly count: number;
}

const example = 'write node[1-8] or node[01-04,07]';

/** Numbers beyond it would lose digits. */
const maximumDigits = 15;

/** Throws a FailureError (hostfile) where brackets hold no numbers. `token` has at least one `[`. */
export function parseHostRange(token: Token, line: SourceLine): HostRange {
  const pieces: Piece[] = [];
  let count = 1;
  let rest = token.text;
  while (rest !== '') {
    const start = rest.indexOf('[');
    const literal = start === -1 ? rest : rest.slice(0, start);
    const offset = token.offset + token.text.length - rest.length;
    const stray = literal.indexOf(']');
    if (stray !== -1) throw hostfileError('"]" without "["', positionIn(line, offset + stray, 1), example);
    if (literal !== '') pieces.push(literal);
    if (start === -1) break;
    const end = rest.indexOf(']', start);
    if (end === -1) {
      const position = positionIn(line, offset + start, rest.length - start);
      throw hostfileError('the "[" of a range is not closed', position, example);
    }
    const numbers = parseNumbers({ text: rest.slice(start + 1, end), offset: offset + start + 1 }, line);
    pieces.push(numbers);
    count *= numbers.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    rest = rest.slice(end + 1);
  }
  return { pieces, count };
}

function parseNumbers(token: Token, line: SourceLine): NumberRange[] {
  return splitOutsideBrackets(token, ',').map((part) => parseNumberRange(part, line));
}

/** `7`, `01-04`. Throws a FailureError (hostfile). */
export function parseNumberRange(part: Token, line: SourceLine): NumberRange {
  const position = positionIn(line, part.offset, part.text.length);
  const match = /^([0-9]+)(?:-([0-9]+))?$/u.exec(part.text);
  const [, from, to = from] = match ?? [];
  if (from === undefined || to === undefined) {
    throw hostfileError(part.text === '' ? 'a number is missing' : `"${part.text}" is no range`, position, example);
  }
  if (from.length > maximumDigits || to.length > maximumDigits) {
    throw hostfileError('the number is too long', position, `at most ${maximumDigits} digits are possible`);
  }
  const [first, last] = [Number(from), Number(to)];
  if (first > last) throw hostfileError(`${part.text} runs backwards`, position, `write ${to}-${from}`);
  const padded = /^0[0-9]/u;
  if (to.length < from.length || (padded.test(to) && to.length !== from.length)) {
    const remedy = `write ${from.padStart(to.length, '0')}-${to.padStart(from.length, '0')} for names of one length, or ${first}-${last} for names without zeros`;
    throw hostfileError(`${part.text} has ends of different lengths`, position, remedy);
  }
  return { first, last, width: from.length };
}

/** All names, the last brackets counting fastest. */
export function expandHostRange({ pieces }: HostRange): string[] {
  let names = [''];
  for (const piece of pieces) {
    const variants = typeof piece === 'string' ? [piece] : piece.flatMap(numbersOf);
    names = names.flatMap((name) => variants.map((variant) => name + variant));
  }
  return names;
}

function numbersOf({ first, last, width }: NumberRange): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => String(first + index).padStart(width, '0'));
}
