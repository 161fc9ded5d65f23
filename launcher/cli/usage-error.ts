/** A command line, environment variable or settings file that cannot be meant. Exit status 2. */
import { FailureError } from '../job/failure-error.ts';

export function usageError(message: string, remedy: string | null): FailureError {
  return new FailureError({ type: 'usage', message, remedy });
}
