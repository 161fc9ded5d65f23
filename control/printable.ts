/**
 * Text that somebody else chose (a peer, a file, a process), made harmless for a terminal and for whoever reads there: no character of it controls
 * the terminal, changes the direction of the writing, is invisible or begins a line.
 */

/** Longer texts of others are cut: in UTF-16 units. */
const MAX_LENGTH = 8192;

/** Most texts are nothing else: the classes below take a third of a millisecond to be made, and as much again to compile. */
const PLAIN = /^[\t -~]*$/;
const PLAIN_LINES = /^[\t\n -~]*$/;

/** One line: replaces unprintable characters by escapes such as `\x1b`, `\n` and `\u202e`; ends in `… (N more bytes)` if the text is too long. */
export function printable(text: string): string {
  const shown = cut(text);
  const more = shown === text ? '' : `… (${Buffer.byteLength(text.slice(shown.length))} more bytes)`;
  return printableLine(shown) + more;
}

/**
 * As printable, of any length. What is replaced: control characters (C0 but the tab, DEL, C1), line and paragraph separators, half surrogate
 * pairs, and format characters (bidirectional overrides, zero-width spaces, tags). The two joiners stay, without which some scripts cannot
 * be written.
 */
export function printableLine(text: string): string {
  return PLAIN.test(text) ? text : text.replaceAll(/(?![\t\u200C\u200D])[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/gu, escaped);
}

/** Of any length, and newlines stay: the text as a whole is ours. JSON stays JSON that means the same. */
export function printableLines(text: string): string {
  return PLAIN_LINES.test(text)
    ? text
    : text.replaceAll(/(?![\t\n\u200C\u200D])[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/gu, escaped);
}

function cut(text: string): string {
  if (text.length <= MAX_LENGTH) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(MAX_LENGTH - 1)) ? MAX_LENGTH - 1 : MAX_LENGTH);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** JSON has escaped what is below U+0020; what is above has the form here that JSON gives it too. */
function escaped(character: string): string {
  if (character === '\n') return String.raw`\n`;
  if (character === '\r') return String.raw`\r`;
  if (character < ' ') return String.raw`\x${hexadecimal(character.charCodeAt(0), 2)}`;
  return Array.from({ length: character.length }, (_, at) => {
    return String.raw`\u${hexadecimal(character.charCodeAt(at), 4)}`;
  }).join('');
}

function hexadecimal(unit: number, digits: number): string {
  return unit.toString(16).padStart(digits, '0');
}
