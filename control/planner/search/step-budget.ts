/** Step budgets of the search. */

/** Steps without improvement after which a search stops; a smaller budget yields worse trees on unknown machines. */
export const STEP_BUDGET = 6 << 10;
/** Steps for the first, ascending order; an attempt with a larger total than the second constant skips it. */
export const STEPS_OF_A_REFERENCE = 1 << 10;
export const STEPS_WITHOUT_REFERENCE = 7 << 10;
/** Steps without improvement after which a reference search stops, because later improvements are rare. */
export const REFERENCE_STEP_BUDGET = 1 << 9;

/** Both try the first, ascending order, or neither. */
export function areReferencesAlike(steps: number, others: number): boolean {
  return steps === others || (steps > STEPS_WITHOUT_REFERENCE && others > STEPS_WITHOUT_REFERENCE);
}
