import { expect, test } from 'vitest';
import type { Calls } from '../../control/messages/calls.ts';
import { decodeCalls, encodeCalls } from '../../control/messages/calls.ts';
import { CallComparison, describeMismatch, findMismatch } from '../../control/rendezvous/mismatch.ts';
import { newKey } from '../rig/rendezvous.ts';

/** `hashes`: of the last collectives, in their order. */
const calls = (rank: number, count: number, hashes: readonly string[]): Calls => ({
  rank,
  pid: 100 + rank,
  count,
  hashes: hashes.map((hash) => hash.charCodeAt(0)).toReversed(),
  waitingFor: rank === 7 ? 3 : null,
  last: `call ${count} of ${rank}`,
});
const name = ({ rank }: Calls): string => `rank ${rank}`;

test('ranks at different positions of the same calls do not differ', () => {
  expect(findMismatch([])).toBeNull();
  expect(findMismatch([calls(0, 0, []), calls(1, 2, ['a', 'b'])])).toBeNull();
  expect(
    findMismatch([calls(0, 4, ['b', 'c', 'd']), calls(1, 5, ['c', 'd', 'e']), calls(2, 2, ['a', 'b'])]),
  ).toBeNull();
  expect(findMismatch([calls(0, 1, ['a']), calls(1, 9, ['x', 'y', 'z'])])).toBeNull(); // no longer remembered
});

test('the message names the first call that differs if it is known', () => {
  const mismatch = findMismatch([calls(0, 5, ['c', 'd', 'x']), calls(1, 4, ['b', 'c', 'y'])]);
  expect(mismatch).toMatchObject({ at: 4, one: { rank: 1 }, other: { rank: 0 } });
  expect(mismatch && describeMismatch(mismatch, name)).toBe(
    'the ranks’ calls differ from the communicator’s collective number 4: rank 1 called call 4 of 1; rank 0 is at number 5, call 5 of 0',
  );
});

test('the message names the first remembered call otherwise', () => {
  const mismatch = findMismatch([calls(0, 9, ['x', 'y', 'z']), calls(1, 9, ['p', 'q', 'r'])]);
  expect(mismatch && describeMismatch(mismatch, name)).toMatch(
    /at or before the communicator’s collective number 7: rank 0 is at number 9/,
  );
});

test('the comparison remembers calls that were read at different times', () => {
  const comparison = new CallComparison();
  expect(comparison.add([calls(0, 3, ['a', 'b', 'c'])])).toBeNull();
  expect(comparison.add([calls(1, 3, ['a', 'b', 'c'])])).toBeNull();
  expect(comparison.add([calls(1, 90, ['x', 'y', 'z'])])).toBeNull();
  expect(comparison.add([calls(2, 4, ['b', 'c', 'd'])])).toBeNull();
  expect(comparison.add([calls(3, 91, ['y', 'w', 'v'])])).toMatchObject({
    at: 90,
    one: { rank: 1 },
    other: { rank: 3 },
  });
});

test('calls survive encoding and decoding', () => {
  const key = newKey();
  const all = [calls(0, 2 ** 40, ['a', 'b']), calls(7, 0, [])];
  expect(decodeCalls(encodeCalls(key, all))).toEqual({ key, all });
});
