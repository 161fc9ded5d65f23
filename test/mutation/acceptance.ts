/** The list of mutants that may live, held against those that there are. */
import type { Mutant } from './mutants.ts';

export interface Accepted {
  readonly file: string;
  /** The line of the source, without its indentation. */
  readonly source: string;
  /** `original -> replacement`; without it, all mutants of the line. */
  readonly change?: string;
  readonly reason: string;
}

export function isAccepted(mutant: Mutant, list: readonly Accepted[]): boolean {
  return list.some((entry) => matches(entry, mutant));
}

/** Entries that no mutant matches any more: the code has changed. */
export function staleEntries(list: readonly Accepted[], mutants: readonly Mutant[]): Accepted[] {
  return list.filter((entry) => !mutants.some((mutant) => matches(entry, mutant)));
}

function matches({ file, source, change }: Accepted, mutant: Mutant): boolean {
  if (file !== mutant.file || source !== mutant.source) return false;
  return change === undefined || change === `${mutant.original} -> ${mutant.replacement}`;
}
