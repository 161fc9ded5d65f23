/** Durations as the schema lets them through: `1h30m`, and Slurm's `1-12`, `1-12:00`, `1-12:00:00` and `12:00:00`. */
import { parseSeconds } from '../../model/values.ts';
import { itemOf } from './item.ts';
import { placeOf, type JobSource } from './job-source.ts';

/** What a timer of the launcher can hold. */
const maximumSeconds = 2_147_483;

/** Null for what is longer than a timer holds, or no time at all. */
function secondsOf(text: string): number | null {
  const clock = /^(?:([0-9]+)-)?([0-9]{1,7})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?$/u.exec(text);
  if (clock === null) return parseSeconds(text);
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = clock.slice(1).map((part) => Number(part ?? 0));
  const all = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  return all > 0 && all <= maximumSeconds ? all : null;
}

/** The job's time limit. Throws a FailureError (usage) for one that no timer holds. */
export function readTimeLimit(job: JobSource): number | null {
  const { time_limit: text } = job.raw;
  return text === undefined ? null : checkedSeconds(job, text, 'time_limit');
}

/** Throws a FailureError (usage) with the place of `key`, in the job or below its `retry`. */
export function checkedSeconds(job: JobSource, text: string, key: string): number {
  const seconds = secondsOf(text);
  if (seconds !== null) return seconds;
  const retry = itemOf(job.map, 'retry');
  const inRetry = retry?.type === 'map' ? itemOf(retry, key) : null;
  const span = inRetry ?? placeOf(job, key);
  throw job.source.mistake(span, `"${key}" is "${text}"`, 'write more than 0 s, and at most 24d');
}
