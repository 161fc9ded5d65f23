/** Splits that ranks are left out of (ncclCommShrink), as engines and agents speak of them. */
import { describe, expect, test } from 'vitest';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { ByteReader } from '../../control/messages/bytes.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { LeftHow, SHRINK_ROUND, SPLIT_ROUND } from '../../control/messages/rendezvous.ts';
import { testAgents } from '../rig/agents.ts';
import type { TestAgents } from '../rig/agents.ts';
import { refusal } from '../rig/engine-client.ts';
import type { EngineClient } from '../rig/engine-client.ts';
import { newKey } from '../rig/rendezvous.ts';

/** "1 of 3" */
function place({ kind, payload }: Frame): string {
  if (kind !== FrameKind.plan) return `answered with kind ${kind}`;
  const reader = new ByteReader(payload, 'plan');
  reader.u32('local index');
  reader.bytes(128, 'id');
  reader.u32('epoch');
  const size = reader.u32('size');
  return `${reader.u32('rank')} of ${size}`;
}

interface World {
  readonly clients: readonly EngineClient[];
  readonly key: Key;
  /** The ranks in `callers` shrink the communicator, each leaving out what `leftOut` says. */
  shrink(
    callers: readonly number[],
    leftOut: (rank: number) => readonly number[] | 'gone',
    number?: number,
  ): Promise<Frame>[];
}

async function join(agents: TestAgents, size: number): Promise<World> {
  const clients = await agents.engines(Array.from({ length: size }, (_, rank) => rank));
  const key = newKey();
  await Promise.all(clients.map((client, rank) => client.join(key, size, rank)));
  return {
    clients,
    key,
    shrink: (callers, leftOut, number = 0) =>
      clients.flatMap((client, rank) =>
        callers.includes(rank)
          ? [client.split({ ...key, round: SHRINK_ROUND + number }, size, rank, 0, 0, leftOut(rank))]
          : [],
      ),
  };
}

describe.each([
  ['one host', 1, 2],
  ['two hosts', 2, 4],
] as const)('a shrink on %s', (_, hosts, size) => {
  const last = size - 1;
  const others = Array.from({ length: last }, (__, rank) => rank);

  test('the shrink completes without the excluded ranks', async () => {
    using agents = testAgents(hosts);
    const world = await join(agents, size);
    const answers = await Promise.all(world.shrink(others, () => [last]));
    expect(answers.map(place)).toEqual(others.map((rank) => `${rank} of ${last}`));
  });

  test('the shrink completes when an excluded rank breaks the communicator before or during it', async () => {
    for (const first of ['leaves', 'shrinks'] as const) {
      using agents = testAgents(hosts);
      const world = await join(agents, size);
      const breaks = async (): Promise<void> => {
        world.clients[last]?.leave(world.key, last, LeftHow.died, 'lost its way');
        await Promise.all(world.clients.slice(0, last).map((client) => client.nextAbort()));
      };
      const early = first === 'shrinks' ? world.shrink(others.slice(1), () => [last]) : [];
      await breaks();
      const late = world.shrink(first === 'shrinks' ? [0] : others, () => [last]);
      const answers = await Promise.all([...late, ...early]);
      expect(answers.map(place)).toEqual(others.map((rank) => `${rank} of ${last}`));
    }
  });

  test('a shrink that excludes dead ranks completes when no rank is dead', async () => {
    using agents = testAgents(hosts);
    const world = await join(agents, size);
    const all = [...others, last];
    const answers = await Promise.all(world.shrink(all, () => 'gone'));
    expect(answers.map(place)).toEqual(all.map((rank) => `${rank} of ${size}`));
  });

  test.each(size > 2 ? [size] : [])(
    'the shrink of %i ranks fails when one rank names the excluded ranks and another does not',
    async () => {
      using agents = testAgents(hosts);
      const world = await join(agents, size);
      const refused = await Promise.all(world.shrink([0, 1], (rank) => (rank === 0 ? 'gone' : [last])));
      for (const frame of refused) expect(refusal(frame).sentence).toContain('leaves out all that are gone');
    },
  );

  test.each(size > 2 ? [size] : [])(
    'the shrink of %i ranks fails when the excluded ranks differ, and the next one may succeed',
    async () => {
      using agents = testAgents(hosts);
      const world = await join(agents, size);
      const refused = await Promise.all(world.shrink([0, last], (rank) => (rank === 0 ? [last] : [0])));
      for (const frame of refused) {
        expect(refusal(frame)).toMatchObject({
          result: NcclResult.invalidArgument,
          sentence: expect.stringMatching(
            /^the ranks left out differ in shrink 1 of communicator \w+: rank \d \(node\d, pid \d+\) leaves out \d, rank \d \(node\d, pid \d+\) leaves out \d$/,
          ),
        });
      }
      const answers = await Promise.all(world.shrink(others, () => [last], 1));
      expect(answers.map(place)).toEqual(others.map((rank) => `${rank} of ${last}`));
    },
  );

  test.each(size > 2 ? ['before', 'during'] : [])('a shrink fails if a needed rank aborts %s it', async (when) => {
    using agents = testAgents(hosts);
    const world = await join(agents, size);
    const aborts = async (): Promise<void> => {
      world.clients[0]?.leave(world.key, 0, LeftHow.aborted, 'no longer needed');
      await Promise.all(world.clients.slice(1).map((client) => client.nextAbort()));
    };
    if (when === 'before') await aborts();
    const answers = world.shrink(others.slice(1), () => [last]);
    if (when === 'during') await aborts();
    for (const frame of await Promise.all(answers)) {
      expect(refusal(frame).sentence).toMatch(/^rank 0 \(node0, pid \d+\) aborted the communicator: no longer needed$/);
    }
  });

  test('a revoked communicator still shrinks, and its splits fail', async () => {
    using agents = testAgents(hosts);
    const world = await join(agents, size);
    const split = world.clients[last]?.split({ ...world.key, round: SPLIT_ROUND }, size, last, 0, 0);
    world.clients[0]?.leave(world.key, 0, LeftHow.revoked, 'rank 0 called ncclCommRevoke');
    for (const client of world.clients) {
      expect(await client.nextAbort()).toMatchObject({ rank: 0, result: NcclResult.remoteError });
    }
    const reported = /ended the operations of the communicator: rank 0 called ncclCommRevoke$/;
    if (split !== undefined) expect(refusal(await split).sentence).toMatch(reported);
    const answers = await Promise.all(world.shrink([...others, last], () => []));
    expect(answers.map(place)).toEqual([...others, last].map((rank) => `${rank} of ${size}`));
  });

  test('a shrink that needs a rank excluded before is rejected', async () => {
    using agents = testAgents(hosts);
    const world = await join(agents, size);
    await Promise.all(world.shrink(others, () => [last]));
    const [answer] = world.shrink([0], () => [], 1);
    if (answer !== undefined)
      expect(refusal(await answer).sentence).toContain(`needs rank ${last}, which an earlier one left out`);
    expect.assertions(1);
  });
});

test('the agent rejects invalid lists of excluded ranks', async () => {
  using agents = testAgents(1);
  const world = await join(agents, 2);
  for (const wrong of [[0], [2], [1, 1]]) {
    const [answer] = world.shrink([0], () => wrong);
    if (answer !== undefined) expect(refusal(await answer).sentence).toContain('cannot be left out here');
  }
  const split = { ...world.key, round: SPLIT_ROUND };
  const answer = await world.clients[0]?.split(split, 2, 0, 0, 0, [1]);
  if (answer !== undefined) expect(refusal(answer).sentence).toContain('a split leaves out no rank');
  expect.assertions(4);
});

test('a shrink fails when long lists of excluded ranks differ', async () => {
  using agents = testAgents(7);
  const world = await join(agents, 14);
  const many = [2, 3, 4, 5, 6, 7, 8, 9];
  const refused = await Promise.all(world.shrink([0, 1], (rank) => [...many, rank === 0 ? 10 : 11]));
  for (const frame of refused) expect(refusal(frame).sentence).toMatch(/^the ranks left out differ in shrink 1/);
});
