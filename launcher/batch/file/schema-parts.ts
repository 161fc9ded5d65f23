/** Parts of the schema. The message of each says what is wanted: it becomes the remedy of a mistake. Expressions have no flags: JSON schemas have none. */
import * as v from 'valibot';
import { nearest } from '../../text/nearest.ts';

/** Text that is not empty. */
export function textOf(wanted: string) {
  return v.pipe(v.string(wanted), v.nonEmpty(wanted));
}

export function patternText(pattern: RegExp, wanted: string) {
  return v.pipe(v.string(wanted), v.regex(pattern, wanted));
}

export function wholeNumber(minimum: number, maximum: number) {
  const wanted = `write a whole number from ${minimum} to ${maximum}`;
  return v.pipe(v.number(wanted), v.integer(wanted), v.minValue(minimum, wanted), v.maxValue(maximum, wanted));
}

export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  return v.picklist(words, ({ input }) => {
    const guess = typeof input === 'string' ? nearest(input.toLowerCase(), words) : null;
    return guess === null ? `write one of ${words.join(', ')}` : `did you mean ${guess}? Known: ${words.join(', ')}`;
  });
}

export const truth = v.boolean('write true or false');

const namePattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const nameWanted = 'write 1 to 63 of a-z, 0-9, - and _, the first of them no - or _';

export const nameText = v.pipe(
  v.string(nameWanted),
  v.regex(namePattern, ({ input }) => {
    const fit = input
      .toLowerCase()
      .replaceAll(/[^a-z0-9_-]+/g, '-')
      .replace(/^[-_]+/, '')
      .slice(0, 63)
      .replace(/-$/, '');
    return namePattern.test(fit) ? `write ${fit}: ${nameWanted.slice('write '.length)}` : nameWanted;
  }),
);

export function isName(text: string): boolean {
  return namePattern.test(text);
}

/** As in `1h30m`, and Slurm's `1-12`, `1-12:00`, `1-12:00:00`, `12:00:00`. */
const durationPattern =
  /^(?:(?=[0-9])(?:[0-9]+(?:\.[0-9]+)?d)?(?:[0-9]+(?:\.[0-9]+)?h)?(?:[0-9]+(?:\.[0-9]+)?m)?(?:[0-9]+(?:\.[0-9]+)?s)?|[0-9]+-[0-9]{1,2}(?::[0-9]{1,2}){0,2}|[0-9]+:[0-9]{1,2}:[0-9]{1,2})$/;

const durationMessage = ({ input }: { readonly input: unknown }) => {
  const text = String(input);
  if (/^[0-9]+$/.test(text))
    return `a number alone is ambiguous: write ${text}m for minutes, as Slurm reads it, or ${text}s for seconds`;
  const [, first, second] = /^([0-9]+):([0-9]+)$/.exec(text) ?? [];
  if (first !== undefined && second !== undefined) {
    return `this is ambiguous: write ${first}m${second}s for minutes and seconds, as Slurm reads it, or ${first}h${second}m for hours and minutes`;
  }
  return 'write a duration such as 90s, 15m, 12h, 1h30m, 2d, 12:00:00 or 1-12:00:00';
};

export const duration = v.pipe(v.string(durationMessage), v.regex(durationPattern, durationMessage));

const sizeExpression = '[0-9]+(?:\\.[0-9]+)?[KMGTkmgt](?:i?[Bb])?';

const sizeMessage = ({ input }: { readonly input: unknown }) => {
  const text = String(input);
  if (/^0+$/.test(text)) return 'leave it out; exclusive: true gives a job all memory of its hosts';
  return /^[0-9]+$/.test(text)
    ? `a number alone is ambiguous: write ${text}M for MiB, as Slurm reads it, or ${text}G for GiB`
    : 'write a size with its unit, such as 200G, 512M or 1.5T';
};

export const size = v.pipe(v.string(sizeMessage), v.regex(new RegExp(`^${sizeExpression}$`), sizeMessage));

const sizeRangeWanted = 'write a size such as 200GB, or at least so much: 200GB..';

/** dstack's: a size, or at least so much. */
export const sizeRange = patternText(
  new RegExp(`^${sizeExpression}(?:\\.\\.(?:${sizeExpression})?)?$`),
  sizeRangeWanted,
);

/** A text as the file has it: numbers and truth values are taken as written. */
export function scalar(wanted: string) {
  return v.union([v.string(), v.number(), v.boolean()], wanted);
}

export function listOf(wanted: string) {
  return v.pipe(v.array(scalar(wanted), wanted), v.minLength(1, wanted));
}

/** A key of a map that may be left out. */
export function key<Schema extends v.GenericSchema>(schema: Schema, description: string) {
  return v.optional(v.pipe(schema, v.description(description)));
}
