/** Who reaches whom in a tree of agents. */
import { expect, test } from 'vitest';
import { parentOf } from '../../launcher/remote/tree/shape.ts';

/** Hosts between the launcher and that one. */
function depthOf(index: number, radix: number): number {
  const parent = parentOf(index, radix);
  return parent === null ? 0 : 1 + depthOf(parent, radix);
}

test('each host reaches at most radix later hosts, and the depth grows logarithmically', () => {
  for (const radix of [1, 2, 3, 32]) {
    const reached = new Map<number | null, number>();
    for (let index = 0; index < 3000; index++) {
      const parent = parentOf(index, radix);
      reached.set(parent, (reached.get(parent) ?? 0) + 1);
      if (parent !== null) expect(parent).toBeLessThan(index);
      if (radix > 1) expect(depthOf(index, radix)).toBeLessThanOrEqual(Math.log2(index + 2) / Math.log2(radix));
    }
    expect(Math.max(...reached.values())).toBe(radix);
  }
});

test('each of the first 32 of 64 hosts reaches one more host', () => {
  expect(Array.from({ length: 64 }, (_, index) => parentOf(index, 32))).toEqual([
    ...Array.from({ length: 32 }, () => null),
    ...Array.from({ length: 32 }, (_, index) => index),
  ]);
  expect(parentOf(5000, 0)).toBe(null);
});
