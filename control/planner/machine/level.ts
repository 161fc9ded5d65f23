/** Levels of distance, as NCCL's variables name them. */
import { UnplannableError } from '../input/check.ts';
import { PATH_TYPES } from './path.ts';
import type { PathType } from './path.ts';

/** The old numbers still count: 0 to 5. */
const NUMBERED: readonly PathType[] = ['LOC', 'PIX', 'PXB', 'PHB', 'SYS', 'SYS'];

/** Throws an UnplannableError for a value that means nothing. */
export function levelOf(name: string, text: string): PathType {
  const farthest = PATH_TYPES.slice(0, PATH_TYPES.indexOf('SYS') + 1);
  const known =
    farthest.find((type) => type === text.toUpperCase()) ??
    (/^[0-9]$/u.test(text) ? NUMBERED[Math.min(Number(text), 5)] : undefined);
  if (known !== undefined) return known;
  throw new UnplannableError(`${name}=${text}: one of ${farthest.join(', ')} is wanted, or a number from 0 to 5`);
}
