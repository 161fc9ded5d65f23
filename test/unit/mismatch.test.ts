import { expect, test } from 'vitest';
import { describeMismatch, findMismatch } from '../../worker/agent/mismatch.ts';
import type { Calls } from '../../worker/agent/mismatch.ts';

const calls = (rank: number, count: number, hashes: readonly string[]): Calls => ({
  rank,
  count,
  hashes: new Map(hashes.map((hash, place) => [count - hashes.length + 1 + place, hash])),
  last: `call ${count} of ${rank}`,
});
const name = (rank: number): string => `rank ${rank}`;

test('ranks at different places of the same calls do not differ', () => {
  expect(findMismatch([])).toBeNull();
  expect(findMismatch([calls(0, 0, []), calls(1, 2, ['a', 'b'])])).toBeNull();
  expect(
    findMismatch([calls(0, 4, ['b', 'c', 'd']), calls(1, 5, ['c', 'd', 'e']), calls(2, 2, ['a', 'b'])]),
  ).toBeNull();
  expect(findMismatch([calls(0, 1, ['a']), calls(1, 9, ['x', 'y', 'z'])])).toBeNull(); // no longer remembered
});

test('the first call that differed is named where it is known', () => {
  const mismatch = findMismatch([calls(0, 5, ['c', 'd', 'x']), calls(1, 4, ['b', 'c', 'y'])]);
  expect(mismatch).toMatchObject({ at: 4, one: { rank: 1 }, other: { rank: 0 } });
  expect(mismatch && describeMismatch(mismatch, name)).toBe(
    'the ranks’ calls differ from the communicator’s collective number 4: rank 1 called call 4 of 1; rank 0 is at number 5, call 5 of 0',
  );
});

test('and else the first that is still remembered', () => {
  const mismatch = findMismatch([calls(0, 9, ['x', 'y', 'z']), calls(1, 9, ['p', 'q', 'r'])]);
  expect(mismatch && describeMismatch(mismatch, name)).toMatch(
    /at or before the communicator’s collective number 7: rank 0 is at number 9/,
  );
});
