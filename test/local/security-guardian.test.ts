/**
 * The guardian's socket, attacked from its agent's end (nobody else has it). Whatever comes, the guardian ends in order when its agent is
 * gone, and so does the rank that it has.
 */
import { describe, expect, it } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { encodeSpawnOrder } from '../../control/messages/spawn-order.ts';
import { cuts, frameKinds, framesOf, lengths, noFrames, type Attack } from '../rig/attack/bytes.ts';
import { alive } from '../rig/processes.ts';
import { GuardianDriver, rankOf, shell } from './guardian-driver.ts';
import { sample } from '../rig/whole.ts';

/** Statuses with which a guardian ends by itself: nothing that a signal or a sanitizer makes. */
const ORDERLY = [0, 1, 2, 3];

async function survives({ name, bytes }: Attack, hasRank: boolean): Promise<void> {
  await using guardian = new GuardianDriver();
  let rank: number | null = null;
  if (hasRank) {
    guardian.start([shell(0, 'exec sleep 1000')]);
    await guardian.until(() => guardian.of(FrameKind.spawned).length === 1);
    rank = guardian.pid(0);
  }
  guardian.raw(bytes);
  guardian.finish();
  const status = await guardian.closed();
  expect({ name, stderr: guardian.stderr, orderly: ORDERLY.some((one) => one === status) }).toEqual({
    name,
    stderr: expect.stringMatching(/^(ncclrun-guardian: [^\n]*\n)*$/),
    orderly: true,
  });
  if (rank !== null) expect({ name, lives: alive(rank) }).toEqual({ name, lives: false });
}

describe.each([
  ['before its order', false],
  ['with a rank', true],
])('the guardian %s', (_, hasRank) => {
  it.each(sample(frameKinds, 4))('the guardian survives or rejects frames of kind %s', async (_name, kind) => {
    for (const attack of framesOf(kind)) await survives(attack, hasRank);
  });

  it.each(noFrames)('the guardian survives or rejects $name', (attack) => survives(attack, hasRank));
});

const order = encodeFrame(
  makeFrame(FrameKind.spawn, {
    payload: encodeSpawnOrder(
      { leaseMs: 0, outputCredit: 1000, runtimeDirectory: '', ranks: [rankOf(0, '/bin/true')] },
      { A: 'b' },
    ),
  }),
);

describe('the order of the guardian', () => {
  it('the guardian survives or rejects an order that is truncated at any byte', async () => {
    for (const attack of cuts(order)) await survives(attack, false);
  });

  it('the guardian survives or rejects an order with any wrong length', async () => {
    for (const attack of lengths(order)) await survives(attack, false);
  });

  it('the guardian survives or rejects a second order while its rank runs', () =>
    survives({ name: 'twice', bytes: order }, true));
});
