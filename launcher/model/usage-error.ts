/** A command line, environment variable or settings file that cannot be meant. Exit status 2. */
import type { SourcePosition } from './failure.ts';
import { FailureError } from './failure-error.ts';

/** `position` is the place in a settings file. */
export function usageError(message: string, remedy: string | null, position?: SourcePosition | null): FailureError {
  return new FailureError({ type: 'usage', message, remedy, ...(position ? { position } : {}) });
}
