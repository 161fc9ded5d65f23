/** When the line of what is going on is drawn. */
import { expect, it } from 'vitest';
import { showsLive } from '../../launcher/cli/launch.ts';

const usual = { live: true, json: false, quiet: false, term: 'xterm', isTerminal: true };

it.each<[string, Partial<typeof usual>, boolean]>([
  ['on a terminal', {}, true],
  ['with --no-live', { live: false }, false],
  ['with --json', { json: true }, false],
  ['with --quiet', { quiet: true }, false],
  ['on a terminal that cannot move its cursor', { term: 'dumb' }, false],
  ['where stderr is no terminal', { isTerminal: false }, false],
])('the line is drawn %s (%j): %s', (_, changes, is) => {
  const { live, json, quiet, term, isTerminal } = { ...usual, ...changes };
  expect(showsLive({ live }, { json, quiet }, { term, isTerminal })).toBe(is);
});

it('the line is drawn on a terminal of which nothing is known', () => {
  expect(showsLive(usual, usual, { term: undefined, isTerminal: true })).toBe(true);
});
