/** Whether the way up of trees fits beside the way down that a search has laid. */
import { expect, test } from 'vitest';
import type { Candidates } from '../../control/planner/search/candidates.ts';
import type { Attempt } from '../../control/planner/search/channels.ts';
import { NO_USE, type Use, type Uses } from '../../control/planner/search/loads.ts';
import { fitsUpwards } from '../../control/planner/search/phases.ts';

/** A path of one link, which has the same number as its position in the tables. */
const over = (link: number): Use => ({ ...NO_USE, hops: 1, first: link, end: link + 1 });

/** MB/s of the links of two GPUs and a NIC, on the way up. */
interface Links {
  readonly second: number;
  readonly toNet: number;
  readonly fromNetToFirst: number;
  readonly fromNetToSecond: number;
}

const wide: Links = { second: 20, toNet: 10, fromNetToFirst: 10, fromNetToSecond: 10 };

/** A channel from GPU 0 to GPU 1 at 20 MB/s, and 10 MB/s to and from the NIC. */
function fits(pattern: Attempt['pattern'], links: Partial<Links>, isInside = false, count = 1): boolean {
  const { second, toNet, fromNetToFirst, fromNetToSecond } = { ...wide, ...links };
  const uses: Uses = {
    between: [NO_USE, NO_USE, over(0), NO_USE],
    toNet: [over(1), NO_USE],
    fromNet: [over(2), over(3)],
    links: Int32Array.of(0, 1, 2, 3),
    factors: Float64Array.of(1, 1, 1, 1),
  };
  const bandwidths = Int32Array.of(second, toNet, fromNetToFirst, fromNetToSecond);
  const candidates: Candidates = Object.assign(Object.create(null), { uses, gpus: 2, nets: 1, bandwidths });
  const attempt: Attempt = Object.assign(Object.create(null), { pattern, inside: 20, between: 10 });
  const channel = { order: [0, 1], nets: isInside ? null : ([0, 0] as const) };
  return fitsUpwards(
    candidates,
    attempt,
    Array.from({ length: count }, () => channel),
  );
}

test.each([
  ['ring', { second: 0, toNet: 0, fromNetToFirst: 0, fromNetToSecond: 0 }, true],
  ['collnetDirect', { second: 0, toNet: 0 }, true],
  ['tree', {}, true],
  ['tree', { second: 19 }, false],
  ['tree', { toNet: 9 }, false],
  ['tree', { fromNetToFirst: 9 }, false],
  ['tree', { fromNetToSecond: 0 }, true],
  ['splitTree', { fromNetToFirst: 0 }, true],
  ['splitTree', { fromNetToSecond: 9 }, false],
  ['balancedTree', { fromNetToFirst: 5, fromNetToSecond: 5 }, true],
  ['balancedTree', { fromNetToFirst: 4 }, false],
  ['balancedTree', { fromNetToSecond: 4 }, false],
] as const)('a channel of pattern %s over links of %j fits upwards: %s', (pattern, links, is) => {
  expect(fits(pattern, links)).toBe(is);
});

test('a channel inside a host needs no NIC, and channels share their links', () => {
  expect(fits('tree', { toNet: 0, fromNetToFirst: 0 }, true)).toBe(true);
  expect(fits('tree', { second: 19 }, true)).toBe(false);
  expect(fits('tree', { second: 40 }, true, 2)).toBe(true);
  expect(fits('tree', { second: 39 }, true, 2)).toBe(false);
});
