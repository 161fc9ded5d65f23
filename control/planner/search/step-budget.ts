/** How many steps of its search an attempt may take. */

/** Without gain, after which it gives up: with fewer, trees of machines that nobody has seen yet come out worse. */
export const STEP_BUDGET = 6 << 10;
/** For the first, ascending order; who has more steps than so many in all does without. */
export const STEPS_OF_A_REFERENCE = 1 << 10;
export const STEPS_WITHOUT_REFERENCE = 7 << 10;
/** Who has found nothing better for so many steps hardly ever does. */
export const REFERENCE_STEP_BUDGET = 1 << 9;

/** Both try the first, ascending order, or neither. */
export function areReferencesAlike(steps: number, others: number): boolean {
  return steps === others || (steps > STEPS_WITHOUT_REFERENCE && others > STEPS_WITHOUT_REFERENCE);
}
