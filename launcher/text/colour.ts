/** Colour for people at terminals: NO_COLOR, FORCE_COLOR and TERM=dumb as everywhere. */
import { styleText } from 'node:util';
import { printableLines } from '../../control/printable.ts';

type Variables = Readonly<Record<string, string | undefined>>;

export type Paint = (format: 'bold' | 'dim' | 'red' | 'yellow', text: string) => string;

/** --color, which stands above the environment's variables. */
let chosen: boolean | null = null;

/** `auto` leaves it to the environment and the terminal. */
export function chooseColour(choice: string | null): void {
  chosen = choice === 'always' ? true : choice === 'never' ? false : null;
}

export function makePaint(isTerminal: boolean, environment: Variables): Paint {
  return paintIf(wantsColour(isTerminal, environment));
}

/** For the terminal of somebody else, about which our --color says nothing. */
export function makeReaderPaint(isTerminal: boolean, environment: Variables): Paint {
  return paintIf(terminalWantsColour(isTerminal, environment));
}

function paintIf(wanted: boolean): Paint {
  if (!wanted) return (_format, text) => text;
  return (format, text) => styleText(format, text, { validateStream: false });
}

const ESCAPE = String.fromCodePoint(0x1b);
/** What a Paint puts before and after a text. */
const CODES = new RegExp(`(${ESCAPE}\\[(?:1|2|22|31|33|39)m)`);

/** Lines of ours that are wider than a terminal's `columns` go on between words, further in. Colours take no columns. */
export function wrappedPainted(text: string, columns: number): string {
  return text
    .split('\n')
    .map((line) => (widthOf(line) <= columns ? line : wrappedLine(line, columns)))
    .join('\n');
}

function wrappedLine(line: string, columns: number): string {
  const [, leading = '', rest = ''] = /^( *)(.*)$/su.exec(line) ?? [];
  const further = widthOf(rest.split(' ', 1)[0] ?? '') === 'next:'.length && leading.length === 2 ? 6 : 2;
  const indent = ' '.repeat(leading.length + further);
  let current = leading;
  let result = '';
  for (const [index, word] of rest.split(' ').entries()) {
    const longer = index === 0 ? leading + word : `${current} ${word}`;
    if (index > 0 && widthOf(longer) > columns) {
      result += `${current}\n`;
      current = indent + word;
    } else current = longer;
  }
  return result + current;
}

function widthOf(text: string): number {
  return text.includes(ESCAPE) ? text.replaceAll(new RegExp(CODES, 'gu'), '').length : text.length;
}

/** As printableLines, of text that has colours. */
export function printablePainted(text: string): string {
  if (!text.includes(ESCAPE)) return printableLines(text);
  const pieces = text.split(CODES); // every other piece is a code
  return pieces.map((piece, index) => (index % 2 === 1 ? piece : printableLines(piece))).join('');
}

export function wantsColour(isTerminal: boolean, environment: Variables): boolean {
  return chosen ?? terminalWantsColour(isTerminal, environment);
}

function terminalWantsColour(isTerminal: boolean, environment: Variables): boolean {
  const forced = environment['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((environment['NO_COLOR'] ?? '') !== '') return false;
  return isTerminal && environment['TERM'] !== 'dumb';
}
