/** What is wrong with a plan. */

/** The plan cannot be carried out; the message names the field. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

export function check(condition: boolean, problem: string): void {
  if (!condition) throw new PlanError(problem);
}

export function checkWhole(name: string, value: number, min: number, max: number): void {
  const fits = Number.isInteger(value) && value >= min && value <= max;
  if (!fits) throw new PlanError(`${name}: ${value}, expected a whole number from ${min} to ${max}`);
}
