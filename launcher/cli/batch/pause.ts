import { steadyClock } from '../../../control/clock.ts';

/** Resolves after so long. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void steadyClock.after(milliseconds, resolve));
}
