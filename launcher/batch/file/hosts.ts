/** Host names of a job: `node[01-04],gpu7`, or a list of such. */
import { hostfileError } from '../../allocation/grammar/diagnostic.ts';
import { parseHostWord } from '../../allocation/grammar/host-name.ts';
import { Reading } from '../../allocation/grammar/reading.ts';
import { splitOutsideBrackets } from '../../allocation/grammar/tokenize.ts';
import { FailureError } from '../../model/failure-error.ts';
import { usageError } from '../../model/usage-error.ts';
import { itemOf, scalarsOf, type Scalar } from './item.ts';
import type { JobSource } from './job-source.ts';
import type { Source } from './source.ts';

/** Null if the job does not say any. Throws a FailureError (usage). */
export function readHosts({ map, source }: JobSource, key: 'hosts' | 'exclude'): string[] | null {
  const item = itemOf(map, key);
  if (item === null) return null;
  const reading = new Reading();
  return scalarsOf(item).flatMap((scalar) => namesIn(scalar, reading, source));
}

function namesIn(scalar: Scalar, reading: Reading, source: Source): string[] {
  // The names stand in a line as a hostfile's do, so that its grammar finds the place of a mistake.
  const span = source.within(scalar, scalar.text);
  const { text: whole, line, column } = source.position(span);
  const isAsWritten = whole.startsWith(scalar.text, column - 1);
  const text = isAsWritten ? whole : scalar.text;
  const offset = isAsWritten ? column - 1 : 0;
  try {
    return splitOutsideBrackets({ text: scalar.text, offset }, ',').flatMap((token) => {
      const sourceLine = { source: source.path, line, text };
      const { names, user, count } = parseHostWord(token, sourceLine, reading);
      if (user === null && count === null) return names;
      throw hostfileError(
        `"${token.text}" has ${user === null ? 'a number of slots' : 'a user'}`,
        { ...source.position(span), ...(isAsWritten ? { column: token.offset + 1, length: token.text.length } : {}) },
        'write the name alone: slots and users stand in the hostfile',
      );
    });
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.type !== 'hostfile') throw error;
    const { message, remedy, position } = error.failure;
    throw usageError(message, remedy, isAsWritten ? position : source.position(scalar));
  }
}
