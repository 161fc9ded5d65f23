/** The file of a job's output. */
import { itemOf } from './item.ts';
import { nearest } from '../../text/nearest.ts';
import type { JobSource } from './job-source.ts';

/** A file for every task and attempt, below a directory for the batch. */
const defaultOutput = '%A/%x.%a.%r.out';

const fields = ['%x', '%j', '%a', '%A', '%t', '%n', '%N', '%r', '%%'];

/** Throws a FailureError (usage) for a field that there is not. */
export function readOutput({ map, source }: JobSource): string {
  const item = itemOf(map, 'output');
  if (item === null || item.type !== 'scalar') return defaultOutput;
  for (const [field] of item.text.matchAll(/%./gsu)) {
    if (fields.includes(field)) continue;
    const guess = nearest(
      field,
      fields.filter((one) => one.toLowerCase() === field.toLowerCase()),
    );
    const remedy = guess === null ? `known: ${fields.join(' ')}` : `did you mean ${guess}? Known: ${fields.join(' ')}`;
    throw source.mistake(source.within(item, field), `"${field}" means nothing in the name of a file`, remedy);
  }
  if (/(?:^|[^%])(?:%%)*%$/u.test(item.text))
    throw source.mistake(item, 'the name of a file ends with "%"', 'write %%');
  if (item.text.includes('\0')) throw source.mistake(item, 'the name of a file holds a null character', 'remove it');
  return item.text;
}
