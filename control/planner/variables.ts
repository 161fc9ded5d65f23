/** NCCL's variables, as the planner reads them. */
import { UnplannableError } from './check.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** null: not set, or to nothing. */
export function valueOf(environment: Environment, name: string): string | null {
  const text = environment[name]?.trim() ?? '';
  return text === '' ? null : text;
}

/** Throws an UnplannableError for another value. */
export function wholeNumber(environment: Environment, name: string, least: number, most: number): number | null {
  const text = valueOf(environment, name);
  if (text === null) return null;
  const parsed = /^[0-9]{1,4}$/u.test(text) ? Number(text) : Number.NaN;
  if (parsed >= least && parsed <= most) return parsed;
  throw new UnplannableError(`${name}=${text}: a whole number from ${least} to ${most} is wanted`);
}
