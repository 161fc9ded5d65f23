import type { Failure } from '../../launcher/model/failure.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';

/** The failure that `run` throws; anything else it does is an error of the test. */
export function failureFrom(run: () => unknown): Failure {
  try {
    run();
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error('nothing was thrown');
}
