/** The collectives that ranks have called last, from planted flight recorders. */
import { expect, it } from 'vitest';
import { MAX_RECENT_CALLS } from '../../control/messages/hang.ts';
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { CollectiveName } from '../../control/plan/types.ts';
import { recentCalls, recentName } from '../../worker/agent/recent-calls.ts';
import { entryOf, RecorderMemory } from '../rig/recorded.ts';

const FLOAT32 = 7;
const PROD = 1;

function callsOf(...entries: readonly (Partial<RecorderEntry> & { readonly of?: CollectiveName })[]) {
  const memory = new RecorderMemory(2).communicator(1, { rank: 0, size: 2 });
  entries.forEach(({ of = 'allReduce', ...entry }, index) =>
    memory.write(entryOf(index + 1, { collective: COLLECTIVES.indexOf(of), ...entry })),
  );
  const found = recentCalls([memory.bytes, Buffer.alloc(8)]);
  return {
    found,
    first: found.get(recentName('0000000000abcdef', 0, 2)),
    second: found.get(recentName('0000000000abcdf0', 0, 0)),
  };
}

it.each<[CollectiveName, Partial<RecorderEntry>, unknown]>([
  ['allReduce', { count: 4, call: FLOAT32 | (PROD << 4) }, { count: 4, type: 'float32', operator: 'prod', root: null }],
  ['allReduce', { call: FLOAT32 | (15 << 4) }, { count: 4, type: 'float32', operator: '?', root: null }],
  ['broadcast', { count: 9, call: 1, peer: 3 }, { count: 9, type: 'uint8', operator: null, root: 3 }],
  ['reduce', { call: 0, peer: 1 }, { count: 4, type: 'int8', operator: 'sum', root: 1 }],
  ['allGather', { call: 11, peer: 3 }, { count: 4, operator: null, root: null }],
  ['barrier', { count: 0, call: FLOAT32 }, { count: 0, type: null, operator: null, root: null }],
])('the agent reports %s of %j with its arguments', (of, entry, expected) => {
  expect(callsOf({ of, operation: 17, ...entry }).first).toMatchObject([
    { number: 17, collective: of, ...Object(expected) },
  ]);
});

it('messages are left out, and each communicator has its own calls', () => {
  const { first, second } = callsOf(
    { operation: 1 },
    { of: 'sendRecv' },
    { communicator: 1, operation: 5 },
    { operation: 2 },
  );
  expect([first, second].map((calls) => calls?.map(({ number }) => number))).toEqual([[1, 2], [5]]);
  expect(callsOf({ of: 'sendRecv' }).found.size).toBe(0);
});

it('the agent reports the last calls', () => {
  const entries = Array.from({ length: MAX_RECENT_CALLS + 3 }, (_, index) => ({ operation: index + 1 }));
  const numbers = callsOf(...entries).first?.map(({ number }) => number);
  expect(numbers).toHaveLength(MAX_RECENT_CALLS);
  expect(numbers?.at(-1)).toBe(MAX_RECENT_CALLS + 3);
});
