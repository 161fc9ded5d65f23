/** Mutants that no test needs to kill, each with the reason. */
import type { Accepted } from './acceptance.ts';

export const accepted: readonly Accepted[] = [];
