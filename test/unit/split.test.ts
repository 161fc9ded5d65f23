import { describe, expect, test, vi } from 'vitest';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { JOIN_ROUND, LeftHow, SPLIT_ROUND } from '../../control/messages/rendezvous.ts';
import { splitParts } from '../../control/rendezvous/split.ts';
import { testAgents } from '../rig/agents.ts';
import { refusal, table } from '../rig/engine-client.ts';
import { newKey, peerInfo } from '../rig/rendezvous.ts';

const colours = (pairs: readonly (readonly [number, number])[]) =>
  pairs.map(([colour, order]) => new ByteWriter().i32(colour).i32(order).bytes(peerInfo()).u32(0).finish());

/** Who a rank is told to be by its plan. */
function place(payload: Uint8Array): { readonly key: Key; readonly size: number; readonly rank: number } {
  const reader = new ByteReader(payload, 'plan');
  reader.u32('local index');
  const id = Buffer.from(reader.bytes(128, 'id')).toString('latin1');
  const key = { id, epoch: reader.u32('epoch'), round: JOIN_ROUND };
  return { key, size: reader.u32('size'), rank: reader.u32('rank') };
}

describe('the parts of a communicator', () => {
  const key = newKey(SPLIT_ROUND);

  test('the parts are ordered by key and rank, and a rank without a colour is in none', () => {
    const parts = splitParts(
      key,
      colours([
        [3, 1],
        [0, 5],
        [3, -1],
        [-1, 0],
        [3, 1],
        [0, 5],
      ]),
    );
    expect(parts.map(({ ranks }) => ranks)).toEqual([
      [2, 0, 4],
      [1, 5],
    ]);
  });

  test('the parts have distinct ids by colour, split and epoch in the same job', () => {
    const one = colours([
      [0, 0],
      [1, 0],
    ]);
    const keys = [key, { ...key, round: SPLIT_ROUND + 1 }, { ...key, epoch: 1 }].flatMap((each) =>
      splitParts(each, one),
    );
    expect(new Set(keys.map((part) => part.key.id)).size).toBe(6);
    for (const part of keys) {
      expect(part.key.round).toBe(JOIN_ROUND);
      expect(part.key.id.slice(0, 16)).toBe(key.id.slice(0, 16));
    }
    expect(splitParts(key, one)).toEqual(splitParts(key, one));
  });
});

describe.each([1, 2])('a split on %d hosts', (hosts) => {
  const ranks = Array.from({ length: 2 * hosts }, (_, rank) => rank);

  test('every rank receives the plan of its part, and a rank without a colour an empty table', async () => {
    using agents = testAgents(hosts);
    const clients = await agents.engines(ranks);
    const world = newKey();
    await Promise.all(clients.map((client, rank) => client.join(world, ranks.length, rank)));
    const split = { ...world, round: SPLIT_ROUND };
    const last = ranks.length - 1;
    const answers = await Promise.all(
      clients.map((client, rank) => client.split(split, ranks.length, rank, rank === last ? -1 : 4, -rank)),
    );
    const outsider = answers.pop();
    expect(outsider?.kind).toBe(FrameKind.table);
    expect(outsider === undefined ? [] : table(outsider)).toEqual([]);
    const places = answers.map(({ payload }) => place(payload));
    expect(places.map(({ size, rank }) => [size, rank])).toEqual(places.map((_, rank) => [last, last - 1 - rank]));
    for (const [rank, { key, rank: part }] of places.entries()) clients[rank]?.leave(key, part, LeftHow.finalized);
    for (const rank of ranks) clients[rank]?.leave(world, rank, LeftHow.finalized);
    await vi.waitFor(() => expect(agents.bootstraps.map(({ size }) => size)).toEqual(agents.bootstraps.map(() => 0)));
    expect(agents.hub.hub.size).toBe(0);
  });

  test('a split fails when a rank aborts it, and the communicator stays usable', async () => {
    using agents = testAgents(hosts);
    const clients = await agents.engines(ranks);
    const world = newKey();
    await Promise.all(clients.map((client, rank) => client.join(world, ranks.length, rank)));
    const split = { ...world, round: SPLIT_ROUND };
    const answers = clients.slice(0, -1).map((client, rank) => client.split(split, ranks.length, rank, 0, 0));
    clients[0]?.leave(split, 0, LeftHow.aborted, 'no longer needed');
    for (const answer of await Promise.all(answers)) {
      expect(refusal(answer).sentence).toMatch(/^rank 0 \(node0, pid \d+\) aborted the split: no longer needed$/);
    }
    const again = { ...world, round: SPLIT_ROUND + 2 };
    const parts = await Promise.all(clients.map((client, rank) => client.split(again, ranks.length, rank, 0, 0)));
    expect(parts.map(({ kind }) => kind)).toEqual(parts.map(() => FrameKind.plan));
  });
});
