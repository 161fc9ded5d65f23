/** How many steps of its search an attempt may take. */
import type { Attempt } from './channels.ts';

/** For the first, ascending order; who has more steps than so many in all does without. */
export const STEPS_OF_A_REFERENCE = 1 << 10;
export const STEPS_WITHOUT_REFERENCE = 7 << 10;
/** Who has found nothing better for so many steps hardly ever does. */
export const PATIENCE_OF_A_REFERENCE = 1 << 9;
const PATIENCE_OF_RINGS = 4 << 10;
/** They come in and go out near one NIC: less can be wrong with the first channels. */
const PATIENCE_OF_TREES_BETWEEN_HOSTS = 1 << 10;
const PATIENCE_OF_BALANCED_TREES = 1 << 8;
/** Where each GPU goes on to its neighbours only, channels differ late, and what is wrong with the first ones shows late. */
export const LONGEST_PATIENCE = 6 << 10;

/** Both try the first, ascending order, or neither. */
export function areReferencesAlike(steps: number, others: number): boolean {
  return steps === others || (steps > STEPS_WITHOUT_REFERENCE && others > STEPS_WITHOUT_REFERENCE);
}

/** Steps without gain after which it gives up. */
export function patienceFor({ pattern, acrossHosts, inside, between }: Attempt, hasSwitch: boolean): number {
  if (!acrossHosts) return hasSwitch ? LONGEST_PATIENCE : PATIENCE_OF_RINGS;
  if (pattern === 'ring') return PATIENCE_OF_RINGS;
  if (pattern !== 'balancedTree') return PATIENCE_OF_TREES_BETWEEN_HOSTS;
  // Known channels, faster inside the host only: that is tried a few times.
  return inside === between ? PATIENCE_OF_BALANCED_TREES : LONGEST_PATIENCE;
}
