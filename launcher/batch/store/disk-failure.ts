import { FailureError } from '../../model/failure-error.ts';

/** What a batch needs on the disk cannot be written there: nothing more may be started. `what` is a noun phrase. */
export function diskFailure(what: string, error: Error): FailureError {
  return new FailureError({
    type: 'system',
    message: `${what} cannot be written: ${error.message}`,
    remedy: 'make room on that disk, or mend it; what runs, runs on, and ncclrun batch --resume goes on with it',
  });
}
