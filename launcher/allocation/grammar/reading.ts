/** Limits that keep a digit too many from filling the memory, and the count of hosts over all lines of a file or list. */
import type { SourcePosition } from '../../model/failure.ts';
import { hostfileError } from './diagnostic.ts';

/** More than any machine has; beyond it a typing error in a range is likelier. Each mention of a host counts. */
export const maximumHosts = 131_072;

/** More ranks than any job has. */
export const maximumSlotsInAll = 2 ** 24;

export class Reading {
  #hosts = 0;

  /** Throws a FailureError (hostfile), before anything is expanded, where `count` more hosts are too many. */
  take(count: number, position: SourcePosition): void {
    this.#hosts += count;
    if (this.#hosts <= maximumHosts) return;
    const word = position.text.slice(position.column - 1, position.column - 1 + position.length);
    const message =
      count > maximumHosts ? `${word} names ${count} hosts` : `with ${word} there are more than ${maximumHosts} hosts`;
    throw hostfileError(message, position, `at most ${maximumHosts} are possible; look for a digit too many`);
  }
}
