/**
 * The end of an agent that nobody on its host watches: its guardian and warden leave once the ranks have ended, while the agent still passes on what
 * other hosts say, or waits for another order. If somebody stops it then, a timer of the kernel ends it, which runs on for a stopped process.
 */
import type { Native } from '../engine/native.ts';

const RENEWAL_MS = 1000;

let renewal: NodeJS.Timeout | null = null;

/** From now on this process is killed when it cannot run for longer than the lease, in milliseconds; 0: never. */
export function endIfStopped(native: Pick<Native, 'endAfter'>, leaseMs: number): void {
  if (leaseMs === 0 || renewal !== null) return;
  const renew = (): void => native.endAfter(leaseMs + RENEWAL_MS);
  renew();
  renewal = setInterval(renew, RENEWAL_MS).unref();
}

/** A guardian watches this process again. */
export function stayIfStopped(native: Pick<Native, 'endAfter'>): void {
  if (renewal === null) return;
  clearInterval(renewal);
  renewal = null;
  native.endAfter(0);
}
