/** Options of a job for ncclrun. */
import { FailureError } from '../../model/failure-error.ts';
import { itemOf, scalarsOf } from './item.ts';
import type { JobSource } from './job-source.ts';
import { remedyForOption } from './own-options.ts';

/** Throws a FailureError for words that ncclrun does not take. */
export type CheckOptions = (words: readonly string[]) => void;

/** Throws a FailureError (usage) for options that the batch decides, and for those that `check` refuses. */
export function readOptions({ map, source }: JobSource, check: CheckOptions): string[] {
  const item = itemOf(map, 'options');
  const scalars = scalarsOf(item);
  if (item === null || scalars.length === 0) return [];
  for (const scalar of scalars) {
    const remedy = remedyForOption(scalar.text);
    if (remedy !== null) throw source.mistake(scalar, `the batch itself decides ${scalar.text}`, remedy);
    if (scalar.text === '--') throw source.mistake(scalar, 'options end before the program', 'leave "--" out');
  }
  const words = scalars.map(({ text }) => text);
  try {
    check(words);
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    const { failure } = error;
    const remedy = 'remedy' in failure ? failure.remedy : null;
    // The option that the message names is where a reader looks.
    const named = scalars.find(
      ({ text }) => text.startsWith('-') && error.message.includes(text.split('=', 1)[0] ?? text),
    );
    throw source.mistake(named ?? item, error.message, remedy);
  }
  return words;
}
