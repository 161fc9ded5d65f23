/** Checks typed values; the words stay strings until here. */
import { parsePortRange, wantedPortRange } from '../../control/port-range.ts';
import type { OptionKind } from './option.ts';

/** Null if `text` is a value of `kind`, else what is wanted instead ("a whole number of at least 1"). */
export function wanted(kind: OptionKind, text: string): string | null {
  switch (kind.type) {
    case 'flag':
      return parseFlag(text) === null ? '1 or 0, true or false' : null;
    case 'integer':
      return parseInteger(text, kind) === null && kind.words?.includes(text) !== true
        ? [`a whole number from ${kind.minimum} to ${kind.maximum}`, ...(kind.words ?? [])].join(' or ')
        : null;
    case 'optional-integer':
      return parseInteger(text, kind) === null && text !== kind.implied
        ? `a whole number from ${kind.minimum} to ${kind.maximum}`
        : null;
    case 'seconds':
      return parseSeconds(text) === null
        ? `a number of seconds greater than 0 and at most ${MAX_SECONDS}, such as 30 or 0.5, or a duration such as 10m or 1h30m`
        : null;
    case 'bytes':
      return parseBytes(text) === null ? 'a number of bytes, such as 8, 64K, 16M or 1G' : null;
    case 'ports':
      return parsePortRange(text) === null ? wantedPortRange(text) : null;
    case 'choice':
    case 'optional-choice':
      return kind.choices.includes(text) ? null : listChoices(kind.choices);
    case 'text':
    case 'list':
      return text === '' ? 'something that is not empty' : null;
    default:
      return unknownKind(kind);
  }
}

export function parseFlag(text: string): boolean | null {
  if (/^(1|true|yes|on)$/iu.test(text)) return true;
  return /^(0|false|no|off|)$/iu.test(text) ? false : null;
}

export function parseInteger(
  text: string,
  range: { readonly minimum: number; readonly maximum: number },
): number | null {
  if (!/^[0-9]{1,15}$/u.test(text)) return null;
  const value = Number(text);
  return value >= range.minimum && value <= range.maximum ? value : null;
}

/** About 24 days, what a timer can hold. */
const MAX_SECONDS = 2_147_483;

const secondsOf: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };
const NUMBER = String.raw`(?:[0-9]{1,7}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})`;
/** Seconds without a unit, or numbers with units, the greater units first. */
const DURATION = new RegExp(
  `^(?:${NUMBER}|(?=.)(?:${NUMBER}d)?(?:${NUMBER}h)?(?:${NUMBER}m)?(?:${NUMBER}s)?(?:${NUMBER}ms)?)$`,
  'u',
);

/** `30`, `0.5`, `10m`, `1h30m`. */
export function parseSeconds(text: string): number | null {
  if (!DURATION.test(text)) return null;
  const pieces = [...text.matchAll(/([0-9.]+)(ms|[dhms]?)/gu)];
  const value = pieces.reduce((sum, [, count, unit]) => sum + Number(count) * (secondsOf[unit || 's'] ?? 0), 0);
  return value > 0 && value <= MAX_SECONDS ? value : null;
}

const units: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 };

/** `8`, `64K`, `1.5M`, `2GiB` → bytes. */
export function parseBytes(text: string): number | null {
  const match = /^([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGT]?)(?:i?B)?$/iu.exec(text);
  const [, digits, letter] = match ?? [];
  if (digits === undefined || letter === undefined) return null;
  const value = Number(digits) * (units[letter.toUpperCase()] ?? Number.NaN);
  return Number.isSafeInteger(value) ? value : null;
}

function listChoices(choices: readonly string[]): string {
  return choices.length === 1 ? choices.join() : `one of ${choices.join(', ')}`;
}

function unknownKind(kind: never): never {
  throw new TypeError(`an option of unknown kind: ${JSON.stringify(kind)}`);
}
