import { describe, expect, test, vi } from 'vitest';
import { NcclResult, NO_RANK } from '../../control/messages/bootstrap.ts';
import { encodeCalls } from '../../control/messages/calls.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import {
  decodeBroken,
  decodeCompleted,
  decodeHostPlanPart,
  decodeKeyFailed,
  decodePlanBody,
  decodeRouted,
  encodeCompleted,
  encodeRouted,
} from '../../control/messages/rendezvous-codec.ts';
import {
  ENDED_CLEANLY,
  LeftHow,
  POST_ROUND,
  RANK_GONE,
  ROUTED_WANTED,
  SPLIT_ROUND,
} from '../../control/messages/rendezvous.ts';
import { decodeHostPlan as readHostPlan } from '../../control/plan/decode.ts';
import { assembleHostPlan } from '../../control/plan/encode.ts';
import { samplePlan } from '../rig/plans.ts';
import { seededRandom, shuffled } from '../rig/random.ts';
import { entry, left, merged, newKey, peerInfo, testHub } from '../rig/rendezvous.ts';
import type { Sent } from '../rig/rendezvous.ts';

const text = (value: string): Uint8Array => Buffer.from(value);
const failures = (sent: readonly Sent[]) =>
  sent
    .filter(({ frame }) => frame.kind === FrameKind.keyFailed)
    .map(({ host, frame }) => ({ host, ...decodeKeyFailed(frame.payload) }));

describe('a gather', () => {
  test('every host gets the same table for any division and order of contributions', () => {
    const random = seededRandom(3);
    for (let round = 0; round < 100; round++) {
      const hosts = 1 + random(5);
      const { hub, sent } = testHub(hosts);
      const key = newKey(random(1000));
      const table = Array.from({ length: 2 * hosts }, (_, rank) => text('x'.repeat(random(20)) + String(rank)));
      const messages = Array.from({ length: hosts }, (_, host) => host).flatMap((host) => {
        const ranks = shuffled([2 * host, 2 * host + 1], random).map((rank) => entry(rank, table[rank]));
        const cut = random(2) === 0 ? [ranks] : ranks.map((one) => [one]);
        return cut.map((entries) => ({ host, frame: merged(key, 2 * hosts, entries) }));
      });
      for (const { host, frame } of shuffled(messages, random)) hub.receive(host, frame);
      expect(sent.map(({ host }) => host).sort((a, b) => a - b)).toEqual(Array.from({ length: hosts }, (_, i) => i));
      for (const { frame } of sent) {
        expect(frame.kind).toBe(FrameKind.completed);
        expect(decodeCompleted(frame.payload).key).toEqual(key);
        expect(Buffer.compare(frame.payload, encodeCompleted(key, table))).toBe(0);
      }
      expect(hub.size).toBe(0);
      hub.close();
    }
  });

  test('a gather that a rank joins twice fails on every host and names both processes', () => {
    const { hub, sent } = testHub(2);
    const key = newKey(1);
    hub.receive(0, merged(key, 4, [entry(0), entry(1)]));
    hub.receive(1, merged(key, 4, [{ ...entry(1), jobRank: 2, pid: 77 }]));
    expect(failures(sent).map(({ host }) => host)).toEqual([0, 1]);
    for (const { result, sentence } of failures(sent)) {
      expect(result).toBe(NcclResult.invalidUsage);
      expect(sentence).toMatch(/^rank 1 of .* is claimed twice: by rank 1 \(node1, pid 77\) and by pid 1001 on node0$/);
    }
    sent.length = 0;
    hub.receive(1, merged(key, 4, [entry(3)]));
    expect(failures(sent)).toHaveLength(1); // who comes later is told too
    hub.close();
  });

  test('a gather with different sizes fails on every host and names both sizes', () => {
    const { hub, sent } = testHub(2);
    const key = newKey(1);
    hub.receive(0, merged(key, 4, [entry(0), entry(1)]));
    hub.receive(1, merged(key, 3, [entry(2)]));
    expect(failures(sent).map(({ host }) => host)).toEqual([0, 1]);
    expect(failures(sent)[0]?.sentence).toMatch(
      /rank 2 \(node1, pid 1002\) has 3 ranks, rank 0 \(node0, pid 1000\) has 4/,
    );
    hub.close();
  });

  test.each([
    [
      'an older epoch',
      newKey(1, 1),
      4,
      0,
      2,
      NcclResult.remoteError,
      /^restarted: rank 0 .* epoch 1, the job is in epoch 2 now$/,
    ],
    ['a later epoch', newKey(1, 3), 4, 0, 2, NcclResult.remoteError, /speaks of epoch 3, the job is in epoch 2$/],
    [
      'a rank beyond the size',
      newKey(1, 2),
      4,
      4,
      2,
      NcclResult.invalidArgument,
      /rank 4 .* is no rank of .* with 4 ranks$/,
    ],
    ['an absurd size', newKey(1, 2), 4e9, 0, 2, NcclResult.invalidArgument, /with 4000000000 ranks$/],
  ] as const)('the hub rejects %s and keeps no state', (_, key, size, rank, epoch, result, expected) => {
    const { hub, sent } = testHub(2, { epoch });
    hub.receive(0, merged(key, size, [entry(rank)]));
    expect(failures(sent)).toMatchObject([{ host: 0, result, sentence: expect.stringMatching(expected) }]);
    expect(hub.size).toBe(0);
    hub.close();
  });
});

describe('a join', () => {
  test('every host gets its plan, and the hub forgets the communicator when all have left', () => {
    const { hub, sent, events } = testHub(3);
    const key = newKey();
    for (const host of [2, 0, 1]) hub.receive(host, merged(key, 6, [entry(2 * host), entry(2 * host + 1)]));
    for (const host of [0, 1, 2]) {
      const [body, part] = sent.filter((one) => one.host === host).map(({ frame }) => frame);
      expect(body?.kind).toBe(FrameKind.planBody);
      expect(part?.kind).toBe(FrameKind.hostPlan);
      if (body === undefined || part === undefined) throw new Error('no plan was sent');
      const whole = assembleHostPlan(decodePlanBody(body.payload).body, decodeHostPlanPart(part.payload).part);
      const decoded = readHostPlan(whole);
      expect(decoded.hostIndex).toBe(host);
      expect(decoded.segment.segmentBytes).toBe(decodeHostPlanPart(part.payload).segmentBytes);
      expect(decoded.locals.map(({ rank }) => rank)).toEqual([2 * host, 2 * host + 1]);
      expect(decoded.plan.hosts.map(({ name }) => name)).toEqual(['node0', 'node1', 'node2']);
    }
    expect(new Set(sent.filter(({ frame }) => frame.kind === FrameKind.planBody).map(({ frame }) => frame)).size).toBe(
      1,
    );
    expect(events).toMatchObject([
      { type: 'network', message: expect.stringMatching(/^network Socket, NICs: node0 uses /) },
      { type: 'communicator', ranks: 6, hosts: 3 },
    ]);
    expect(hub.size).toBe(1);
    for (const host of [0, 1, 2]) hub.receive(host, left(key, ALL_RANKS, LeftHow.finalized));
    expect(hub.size).toBe(0);
    hub.close();
  });

  test('a join of some hosts numbers only those hosts', () => {
    const { hub, sent } = testHub(4);
    const key = newKey();
    hub.receive(3, merged(key, 2, [{ ...entry(0), jobRank: 6 }]));
    hub.receive(1, merged(key, 2, [{ ...entry(1), jobRank: 2 }]));
    expect([...new Set(sent.map(({ host }) => host))]).toEqual([1, 3]);
    const [body, part] = sent.filter(({ host }) => host === 1).map(({ frame }) => frame.payload);
    const whole = assembleHostPlan(decodePlanBody(body ?? text('')).body, decodeHostPlanPart(part ?? text('')).part);
    expect(readHostPlan(whole).plan).toMatchObject({
      hosts: [{ name: 'node1' }, { name: 'node3' }],
      peers: [{ host: 1 }, { host: 0 }],
    });
    hub.close();
  });

  test.each([
    [
      'ranks of two kinds of devices',
      { device: 'cuda', busId: 'ff' },
      /rank 0 \(node0\) uses the host device, rank 1 \(node1\) the cuda device/,
    ],
    ['a rank that cannot be reached', { listenPort: 0 }, /rank 1 on node1 listens on no port, but 2 hosts take part/],
  ] as const)('a join of %s fails on every host', (_, changes, expected) => {
    const { hub, sent } = testHub(2);
    const key = newKey();
    hub.receive(0, merged(key, 2, [entry(0)]));
    hub.receive(1, merged(key, 2, [{ ...entry(1, peerInfo(changes)), jobRank: 2 }]));
    expect(failures(sent).map(({ host }) => host)).toEqual([0, 1]);
    expect(failures(sent)[0]?.sentence).toMatch(expected);
    expect(hub.size).toBe(0);
    hub.close();
  });

  test('a join fails while its id is still in use', () => {
    const { hub, sent } = testHub(1);
    const key = newKey();
    hub.receive(0, merged(key, 2, [entry(0), entry(1)]));
    sent.length = 0;
    hub.receive(0, merged(key, 2, [entry(0), entry(1)]));
    expect(failures(sent)[0]?.sentence).toMatch(/is still in use/);
    hub.close();
  });

  test("a join uses the user's plan and rejects a plan for another number of ranks", () => {
    const given = { source: 'mine.json', plan: samplePlan() };
    const rankHosts = [0, 1, 0, 1, 0];
    const { hub, sent } = testHub(2, { plan: given, rankHosts });
    const key = newKey();
    hub.receive(0, merged(key, 5, [entry(0), entry(2), entry(4)]));
    hub.receive(1, merged(key, 5, [entry(1), entry(3)]));
    const [body, part] = sent.filter(({ host }) => host === 0).map(({ frame }) => frame.payload);
    const whole = assembleHostPlan(decodePlanBody(body ?? text('')).body, decodeHostPlanPart(part ?? text('')).part);
    const { plan } = readHostPlan(whole);
    expect(plan).toMatchObject({
      channels: given.plan.channels.map((channel) => ({ ...channel, rail: 0 })),
      tuning: given.plan.tuning,
      ringBuffer: given.plan.ringBuffer,
    });
    expect(plan.token).not.toBe(given.plan.token);
    expect(plan.hosts).toMatchObject([{ address: '10.0.0.0' }, { address: '10.0.0.1' }]);
    hub.close();

    const other = testHub(1, { plan: given });
    other.hub.receive(0, merged(key, 2, [entry(0), entry(1)]));
    expect(failures(other.sent)[0]?.sentence).toMatch(
      /^the plan in mine\.json is for 5 ranks, this communicator has 2/,
    );
    other.hub.close();
  });
});

describe('the end of a rank or host', () => {
  test('the end of an awaited rank fails the key within a second and is reported', async () => {
    const { hub, sent, missing } = testHub(2);
    const key = newKey();
    hub.receive(0, merged(key, 4, [entry(0), entry(1)]));
    hub.receive(1, merged(key, 4, [entry(2)]));
    const start = Date.now();
    hub.rankEnded(3, 'exited with status 0');
    await vi.waitFor(() => expect(failures(sent)).toHaveLength(2), { interval: 5 });
    expect(Date.now() - start).toBeLessThan(1000);
    expect(failures(sent).map(({ host }) => host)).toEqual([0, 1]);
    expect(failures(sent)[0]).toMatchObject({ result: NcclResult.remoteError });
    expect(failures(sent)[0]?.sentence).toMatch(
      /^rank 3 \(node1\) exited with status 0 without joining communicator \w{8}: of its 4 ranks 0, 1, 2 have come$/,
    );
    expect(missing).toMatchObject([{ rank: 3 }]);
    hub.close();
  });

  test('a rank that exits before it joins fails nothing while enough other ranks can join', async () => {
    const { hub, sent } = testHub(2);
    const key = newKey();
    hub.receive(0, merged(key, 2, [entry(0)]));
    hub.rankEnded(3, 'exited with status 0');
    hub.receive(0, merged(key, 2, [entry(1)]));
    await new Promise((resolve) => setImmediate(resolve));
    expect(failures(sent)).toEqual([]);
    expect(sent.map(({ frame }) => frame.kind)).toContain(FrameKind.hostPlan);
    hub.close();
  });

  test('the exit of a rank that has contributed fails the key at once', () => {
    const { hub, sent } = testHub(2);
    const key = newKey(5);
    hub.receive(0, merged(key, 4, [entry(0), entry(1)]));
    hub.rankEnded(1, 'was killed by SIGKILL');
    expect(failures(sent)[0]?.sentence).toMatch(
      /^rank 1 \(node0\) was killed by SIGKILL while others waited in round 5 of/,
    );
    hub.close();
  });

  test('the loss of a host fails every key and communicator that it takes part in', () => {
    const { hub, sent } = testHub(2);
    const [live, pending] = [newKey(), newKey(1)];
    for (const host of [0, 1]) hub.receive(host, merged(live, 4, [entry(2 * host), entry(2 * host + 1)]));
    hub.receive(0, merged(pending, 4, [entry(0)]));
    hub.receive(1, merged(pending, 4, [entry(2)]));
    sent.length = 0;
    hub.hostLost(1, 'was on node1, which was lost');
    const broken = sent.filter(({ frame }) => frame.kind === FrameKind.broken);
    expect(broken.map(({ host }) => host)).toEqual([0]);
    expect(decodeBroken(broken[0]?.frame.payload ?? text(''))).toMatchObject({
      sentence: 'rank 2 was on node1, which was lost',
    });
    expect(failures(sent)).toMatchObject([{ host: 0, sentence: 'rank 2 was on node1, which was lost' }, { host: 1 }]);
    expect(hub.size).toBe(0);
    hub.close();
  });

  test('the hub reports the exit of a rank to the other hosts and fails later rounds', () => {
    const { hub, sent } = testHub(3);
    const key = newKey();
    for (const host of [0, 1, 2]) hub.receive(host, merged(key, 6, [entry(2 * host), entry(2 * host + 1)]));
    hub.receive(0, merged({ ...key, round: 7 }, 6, [entry(0), entry(1)]));
    sent.length = 0;
    hub.receive(1, left(key, 2, LeftHow.died, 'rank 2 (node1, pid 1002) was killed by SIGKILL'));
    const broken = sent.filter(({ frame }) => frame.kind === FrameKind.broken);
    expect(broken.map(({ host }) => host)).toEqual([0, 2]);
    for (const { frame } of broken) {
      expect(frame.flags).toBe(0);
      expect(decodeBroken(frame.payload)).toMatchObject({ key, rank: 2, result: NcclResult.remoteError });
    }
    expect(failures(sent)).toMatchObject([{ host: 0, key: { round: 7 } }]);
    sent.length = 0;
    hub.receive(2, merged({ ...key, round: 8 }, 6, [entry(4)]));
    expect(failures(sent)).toMatchObject([{ host: 2, sentence: 'rank 2 (node1, pid 1002) was killed by SIGKILL' }]);
    expect(hub.size).toBe(0);
    hub.close();
  });

  test('an exit with status 0 is reported as such, and the communicator lives until all have left', () => {
    const { hub, sent } = testHub(2);
    const key = newKey();
    for (const host of [0, 1]) hub.receive(host, merged(key, 4, [entry(2 * host), entry(2 * host + 1)]));
    sent.length = 0;
    hub.receive(1, left(key, 3, LeftHow.died, 'rank 3 (node1, pid 1003) exited with status 0', ENDED_CLEANLY));
    expect(sent).toMatchObject([{ host: 0, frame: { kind: FrameKind.broken, flags: ENDED_CLEANLY } }]);
    for (const host of [0, 1]) hub.receive(host, left(key, ALL_RANKS, LeftHow.finalized));
    expect(hub.size).toBe(0);
    hub.close();
  });
});

const calls = (rank: number, hash: number, waitingFor: number | null = null) => ({
  rank,
  pid: 1000 + rank,
  count: 3,
  hashes: [hash, 2, 1],
  last: `call ${hash}`,
  waitingFor,
});
const reported = (sent: readonly Sent[]) =>
  sent
    .filter(({ frame }) => frame.kind === FrameKind.broken)
    .map(({ host, frame }) => ({ host, ...decodeBroken(frame.payload) }));

/** Hosts 0, 1 and 2 with two ranks each; `waits`: rank 0 waits in vain for rank 3. */
function withWaiter() {
  const { hub, sent, ...rest } = testHub(3);
  const key = newKey();
  for (const host of [0, 1, 2]) hub.receive(host, merged(key, 6, [entry(2 * host), entry(2 * host + 1)]));
  sent.length = 0;
  const waits = (): void => hub.receive(0, makeFrame(FrameKind.calls, { payload: encodeCalls(key, [calls(0, 7, 3)]) }));
  return { hub, sent, key, waits, ...rest };
}

describe('a rank that is gone while others continue', () => {
  const invalidUsage = { rank: 3, result: NcclResult.invalidUsage };

  test.each([
    ['in order together with its host', ALL_RANKS, LeftHow.finalized, 'rank 3 (node1)'],
    ['in order alone', 3, LeftHow.finalized, 'rank 3 (node1, pid 1003)'],
  ])('hosts whose ranks wait learn that a rank left %s', (_, rank, how, sentence) => {
    for (const first of ['wait', 'leave']) {
      const { hub, sent, key, waits } = withWaiter();
      const leaves = (): void => hub.receive(1, left(key, rank, how, sentence));
      for (const step of first === 'wait' ? [waits, leaves] : [leaves, waits]) step();
      expect(reported(sent)).toEqual([{ host: 0, key, ...invalidUsage, sentence }]);
      expect(sent.map(({ frame }) => frame.flags)).toEqual([RANK_GONE]);
      hub.close();
    }
  });

  test('hosts whose ranks wait learn that a rank aborted, and other hosts do not', () => {
    const { hub, sent, key, waits } = withWaiter();
    hub.receive(1, left(key, 3, LeftHow.abortedAlone, 'rank 3 aborted the communicator'));
    expect(sent).toEqual([]);
    waits();
    expect(reported(sent)).toEqual([
      { host: 0, key, rank: 3, result: NcclResult.remoteError, sentence: 'rank 3 aborted the communicator' },
    ]);
    hub.close();
  });

  test('a rank that aborted fails current and later rounds that need it', () => {
    const { hub, sent, key } = withWaiter();
    const round = { ...key, round: SPLIT_ROUND };
    hub.receive(0, merged(round, 6, [entry(0), entry(1)]));
    hub.receive(1, left(key, 3, LeftHow.abortedAlone, 'rank 3 aborted the communicator'));
    hub.receive(2, merged({ ...round, round: SPLIT_ROUND + 1 }, 6, [entry(4)]));
    expect(failures(sent)).toMatchObject([
      { host: 0, sentence: 'rank 3 aborted the communicator' },
      { host: 2, sentence: 'rank 3 aborted the communicator' },
    ]);
    hub.close();
  });
});

describe('mismatched calls', () => {
  test('mismatched calls of waiting ranks end the communicator on every host', () => {
    const { hub, sent } = testHub(3);
    const key = newKey();
    for (const host of [0, 1, 2]) hub.receive(host, merged(key, 6, [entry(2 * host), entry(2 * host + 1)]));
    for (const [host, rank, hash] of [
      [0, 0, 7],
      [1, 2, 7],
      [2, 5, 8],
    ] as const)
      hub.receive(host, makeFrame(FrameKind.calls, { payload: encodeCalls(key, [calls(rank, hash)]) }));
    const sentence =
      'the ranks’ calls differ from the communicator’s collective number 3: rank 0 (node0, pid 1000) called call 7; rank 5 (node2, pid 1005) called call 8';
    expect(reported(sent)).toEqual(
      [0, 1, 2].map((host) => ({ host, key, rank: NO_RANK, result: NcclResult.invalidUsage, sentence })),
    );
    hub.close();
  });

  test('a split fails when ranks of another host have finalized', () => {
    for (const first of ['split', 'finalize']) {
      const { hub, sent } = testHub(2);
      const key = newKey();
      const round = { ...key, round: SPLIT_ROUND };
      for (const host of [0, 1]) hub.receive(host, merged(key, 4, [entry(2 * host), entry(2 * host + 1)]));
      const splits = (): void => hub.receive(0, merged(round, 4, [entry(0), entry(1), { ...entry(2), jobRank: 0 }]));
      const finalizes = (): void => hub.receive(1, left(key, ALL_RANKS, LeftHow.finalized));
      const steps = first === 'split' ? [splits, finalizes] : [finalizes, splits];
      steps[0]?.();
      expect(failures(sent)).toEqual([]);
      steps[1]?.();
      expect(failures(sent)).toMatchObject([
        {
          host: 0,
          result: NcclResult.invalidUsage,
          sentence: expect.stringMatching(/rank 3 \(node1\) called ncclCommFinalize where others called ncclCommSplit/),
        },
      ]);
      hub.close();
    }
  });

  test('a split completes if all ranks began it before they finalized', () => {
    const { hub, sent } = testHub(2);
    const key = newKey();
    const round = { ...key, round: SPLIT_ROUND };
    for (const host of [0, 1]) hub.receive(host, merged(key, 4, [entry(2 * host), entry(2 * host + 1)]));
    hub.receive(0, merged(round, 4, [entry(0, text('no colour')), entry(1, text('no colour'))]));
    hub.receive(0, left(key, ALL_RANKS, LeftHow.finalized));
    expect(failures(sent)).toEqual([]);
    hub.close();
  });
});

const message = (bytes: string) => ({ key: newKey(POST_ROUND), from: 0, to: 3, tag: 9, bytes: text(bytes) });

describe('a message', () => {
  test.each([
    ['before', [1, 0]],
    ['after', [0, 1]],
  ] as const)('a message that is posted %s its request arrives once', (_, order) => {
    const { hub, sent } = testHub(2);
    const posted = message('hello');
    const steps = [
      () =>
        hub.receive(
          1,
          makeFrame(FrameKind.routed, { flags: ROUTED_WANTED, payload: encodeRouted({ ...posted, bytes: text('') }) }),
        ),
      () => hub.receive(0, makeFrame(FrameKind.routed, { payload: encodeRouted(posted) })),
    ];
    for (const step of order) steps[step]?.();
    expect(sent.map(({ host }) => host)).toEqual([1]);
    const arrived = decodeRouted(sent[0]?.frame.payload ?? text(''));
    expect(Buffer.from(arrived.bytes).toString()).toBe('hello');
    hub.close();
  });

  test('messages arrive in the order of posting', () => {
    const { hub, sent } = testHub(2);
    const first = message('1');
    for (const bytes of ['1', '2', '3']) {
      hub.receive(0, makeFrame(FrameKind.routed, { payload: encodeRouted({ ...first, bytes: text(bytes) }) }));
    }
    for (let count = 0; count < 3; count++) {
      hub.receive(
        1,
        makeFrame(FrameKind.routed, { flags: ROUTED_WANTED, payload: encodeRouted({ ...first, bytes: text('') }) }),
      );
    }
    expect(sent.map(({ frame }) => Buffer.from(decodeRouted(frame.payload).bytes).toString())).toEqual(['1', '2', '3']);
    hub.close();
  });
});

test('the hub reports late ranks with their hosts if it knows them', async () => {
  const { hub, events } = testHub(2, { lateAfterMs: 20 });
  hub.receive(0, merged(newKey(), 4, [entry(0), entry(1)]));
  hub.receive(1, merged(newKey(4), 3, [{ ...entry(2), jobRank: 3 }]));
  await vi.waitFor(() => expect(events).toHaveLength(2), { interval: 5 });
  expect(events).toMatchObject([
    { type: 'waiting', missing: ['rank 2 (node1)', 'rank 3 (node1)'] },
    { type: 'waiting', what: expect.stringMatching(/^round 4 of communicator /), missing: ['rank 0', 'rank 1'] },
  ]);
  hub.close();
});
