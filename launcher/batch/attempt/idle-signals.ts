/**
 * Signals that reach a launcher between two attempts were meant for the one that has ended: nothing happens. While it has an attempt, they end it, or
 * the job handles them.
 */
import { blockSigusr1 } from '../../local/host.ts';
import { forwardable } from '../../model/forwardable.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', ...forwardable] as const;

function nothing(): void {}

export function ignoreSignals(): void {
  for (const signal of signals) process.on(signal, nothing);
  blockSigusr1(false); // one that was held up is not for the next attempt
}

/** Resolves when all signals that were sent before the call have been ignored. */
export async function heedSignals(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  blockSigusr1(true);
  for (const signal of signals) process.off(signal, nothing);
}
