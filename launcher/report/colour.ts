/** Colour for people at terminals: NO_COLOR, FORCE_COLOR and TERM=dumb as everywhere. */
import { styleText } from 'node:util';

export type Paint = (format: 'bold' | 'dim' | 'red' | 'yellow', text: string) => string;

export function makePaint(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): Paint {
  if (!wantsColour(isTerminal, environment)) return (_format, text) => text;
  return (format, text) => styleText(format, text, { validateStream: false });
}

export function wantsColour(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): boolean {
  const forced = environment['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((environment['NO_COLOR'] ?? '') !== '') return false;
  return isTerminal && environment['TERM'] !== 'dumb';
}
