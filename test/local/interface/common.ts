import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Communicator } from 'ncclrun';

/** What a rank does, by the name that its program is given; it fails with an assertion. */
export type Cases = Readonly<Record<string, () => Promise<void>>>;

export const usage = (message: RegExp) => ({ name: 'UsageError', message });

/** The ranks after and before ours, in a circle. */
export const neighbours = ({ rank, size }: Communicator) => [(rank + 1) % size, (rank + size - 1) % size] as const;

/** Runs the garbage collector. */
export function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new TypeError('there is no garbage collector to call');
  return () => Reflect.apply(collect, null, []);
}
