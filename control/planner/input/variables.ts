/** NCCL's variables, as the planner reads them. */
import { UnplannableError } from './check.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** null: not set, or to nothing. */
export function valueOf(environment: Environment, name: string): string | null {
  const text = environment[name]?.trim() ?? '';
  return text === '' ? null : text;
}

/** Throws an UnplannableError for another value. */
export function wholeNumber(environment: Environment, name: string, min: number, max: number): number | null {
  const text = valueOf(environment, name);
  if (text === null) return null;
  const parsed = numberOf(text);
  if (parsed >= min && parsed <= max) return parsed;
  throw new UnplannableError(`${name}=${text}: a whole number from ${min} to ${max} is wanted`);
}

/** The same for any whole number. */
export function anyNumber(environment: Environment, name: string): number | null {
  const text = valueOf(environment, name);
  const parsed = text === null ? null : numberOf(text);
  if (parsed === null || !Number.isNaN(parsed)) return parsed;
  throw new UnplannableError(`${name}=${text}: a whole number is wanted`);
}

/** As NCCL reads numbers: 4, -1, 0x4, and 010 for 8. NaN: it is none. */
function numberOf(text: string): number {
  const [, sign, digits = ''] = /^([-+]?)(0x[0-9a-f]{1,4}|[0-9]{1,5})$/iu.exec(text) ?? [];
  if (sign === undefined) return Number.NaN;
  const isOctal = /^0[0-9]/u.test(digits);
  if (isOctal && /[89]/u.test(digits)) return Number.NaN;
  const value = isOctal ? Number.parseInt(digits, 8) : Number(digits);
  return sign === '-' ? -value : value;
}
