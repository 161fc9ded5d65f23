/** When ranks began their last collectives, and how long they were outside of all operations before, from planted flight recorders. */
import { expect, it } from 'vitest';
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import { rankArrivals } from '../../worker/agent/arrivals.ts';
import { entryOf, RecorderMemory } from '../rig/recorded.ts';

/** From when to when an operation ran, in microseconds; [from, 0]: it runs. */
type Span = readonly [from: number, to: number, changes?: Partial<RecorderEntry>];

function memory(rank: number, spans: readonly Span[], size = 4): RecorderMemory {
  const recorded = new RecorderMemory(rank, size).communicator(9, { rank: 0, size: 1 });
  spans.forEach(([from, to, changes], index) => {
    recorded.write(entryOf(index + 1, { enqueuedNs: 1, startedNs: from * 1000, endedNs: to * 1000, ...changes }));
  });
  return recorded;
}

/** Of the only communicator: the numbers, the first beginning, what came after, and the time outside of operations. */
function arrivals(...spans: readonly Span[]): unknown {
  const found = rankArrivals([memory(2, spans).bytes]);
  return found.map(({ numbers, startUs, afterUs, outsideUs }) => [numbers, startUs, afterUs, outsideUs]);
}

const sendRecv = COLLECTIVES.indexOf('sendRecv');

it.each<[string, readonly Span[], unknown[]]>([
  ['no operation', [], []],
  ['one operation', [[100, 200]], [[[1], 100, [], []]]],
  [
    'operations one after the other',
    [
      [100, 200],
      [250, 300],
      [310, 0],
    ],
    [[[1, 2, 3], 100, [150, 60], [50, 10]]],
  ],
  [
    'operations that overlap',
    [
      [100, 400],
      [250, 300],
      [450, 500],
    ],
    [[[1, 2, 3], 100, [150, 200], [0, 50]]],
  ],
  [
    'an operation that is not over when the next begins',
    [
      [100, 0],
      [250, 300],
    ],
    [[[1, 2], 100, [150], [0]]],
  ],
  [
    'an operation that has not begun',
    [
      [100, 200],
      [0, 0],
    ],
    [[[1], 100, [], []]],
  ],
  [
    'messages, which count as time in operations only',
    [
      [100, 200],
      [220, 240, { collective: sendRecv, operation: 1 }],
      [250, 300, { operation: 2 }],
    ],
    [[[1, 2], 100, [150], [30]]],
  ],
  [
    'a gap in the numbers',
    [
      [100, 200],
      [250, 300, { operation: 7 }],
      [310, 320, { operation: 8 }],
    ],
    [[[1, 7, 8], 100, [150, 60], [50, 10]]],
  ],
  [
    'numbers that begin again, from which the later ones count',
    [
      [100, 200, { operation: 7 }],
      [250, 300, { operation: 1 }],
      [310, 320, { operation: 2 }],
    ],
    [[[1, 2], 250, [60], [10]]],
  ],
  [
    'operations that were written out of their order in time',
    [
      [100, 200],
      [300, 350, { communicator: 9 }],
      [220, 240, { communicator: 9 }],
      [400, 420, { operation: 2 }],
    ],
    [[[1, 2], 100, [300], [130]]],
  ],
])(
  'an agent reports when the collectives of a rank began that has %s, and its time outside of operations',
  (_, spans, expected) => {
    expect(arrivals(...spans)).toEqual(expected);
  },
);

it('an agent reports the last 64 collectives', () => {
  const numbers = Array.from({ length: 64 }, (_, index) => index + 7);
  const spans = Array.from({ length: 70 }, (_, index): Span => [100 * index + 10, 100 * index + 20]);
  expect(arrivals(...spans)).toEqual([[numbers, 610, Array(63).fill(100), Array(63).fill(90)]]);
});

it('an agent reports a rank with its name, and none of communicators of one rank', () => {
  const spans: Span[] = [[100, 200]];
  expect(rankArrivals([memory(0, spans, 1).bytes])).toEqual([]);
  const found = rankArrivals([memory(1, spans, 2).bytes, Buffer.alloc(10)]);
  expect(found).toMatchObject([{ communicator: '0000000000abcdef', epoch: 0, size: 2, jobRank: 1, rank: 1 }]);
});

it('an answer has room for 512 ranks in communicators', () => {
  const { bytes } = memory(1, [[100, 200]]);
  expect(rankArrivals(Array.from({ length: 513 }, () => bytes))).toHaveLength(512);
});
