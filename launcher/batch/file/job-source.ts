/** A job as the file has it: what its readers work on. */
import type { FailureError } from '../../model/failure-error.ts';
import { itemOf, type Mapping, type Span } from './item.ts';
import type { RawJob } from './schema.ts';
import type { Source } from './source.ts';

export interface JobSource {
  readonly source: Source;
  /** With the defaults in it. */
  readonly map: Mapping;
  /** The same as the schema has it. */
  readonly raw: RawJob;
}

/** Where a key's value stands; where the job's name stands if the job lacks the key. */
export function placeOf({ map }: JobSource, key: string): Span {
  return itemOf(map, key) ?? itemOf(map, 'name') ?? map;
}

export function mistakeIn(job: JobSource, key: string, message: string, remedy: string | null): FailureError {
  return job.source.mistake(placeOf(job, key), message, remedy);
}
