/**
 * What of the suites .ci/run leaves to .ci/full, so that a change can be tried in minutes: of many cases of one kind all but a sample, and
 * cases that take tens of seconds each.
 */
export const isWhole = process.env['NCCLRUN_TEST_LONG'] === '1';

/** Every `of`th case; all in .ci/full. */
export function sample<Case>(cases: readonly Case[], of: number): Case[] {
  return cases.filter((_, index) => isWhole || index % of === 0);
}

/** In .ci/full `whole`, else `few`. */
export function sampleSize(whole: number, few: number): number {
  return isWhole ? whole : few;
}

/** The cases in .ci/full, else none. */
export function inFull<Case>(cases: readonly Case[]): Case[] {
  return isWhole ? [...cases] : [];
}
