/** Counters of connections over the network: how agents read them, and what is concluded from two readings. */
import { describe, expect, test } from 'vitest';
import type { HostRankPositions, RankEdge } from '../../control/messages/hang.ts';
import { blockedEdges, commonHost } from '../../launcher/hang/blocked.ts';
import { judgeHangs } from '../../launcher/hang/judge.ts';
import type { Reading } from '../../launcher/hang/table.ts';
import { linksBetween, slowLinkIn } from '../../launcher/straggler/links.ts';
import { slowLinkVerdict } from '../../launcher/straggler/link-verdict.ts';
import { rankEdges } from '../../worker/agent/edges.ts';
import { readings } from '../rig/positions.ts';
import { seededRandom } from '../rig/random.ts';
import { RecorderMemory } from '../rig/recorded.ts';

const COMM = '00000000000abcde';

function edge(from: number, to: number, sends: boolean, changes: Partial<RankEdge> = {}): RankEdge {
  const [rank, peer] = sends ? [from, to] : [to, from];
  const ofComm = { communicator: COMM, epoch: 0, jobRank: rank, rank, peer, channel: 0, sends, nic: 'eth0' };
  return { ...ofComm, handed: 8, carried: 8, bytes: 1000, busyUs: 10, idleUs: 4_200_000, wire: null, ...changes };
}

/** One rank on each host; all inside an operation, and nothing is known of whom they wait for. */
function withEdges(ranks: number, edges: readonly RankEdge[]): readonly [Reading, Reading] {
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const waits = Object.fromEntries(all.map((rank) => [rank, { waitsFor: (rank + ranks - 1) % ranks }]));
  const [first, second] = readings({ comms: [{ id: COMM, ranks: all, changes: waits }], ranksPerHost: 1 });
  const add = ({ answers, asked }: Reading): Reading => ({
    asked,
    answers: new Map(
      Array.from(answers, ([host, where]) => [
        host,
        { ...where, edges: edges.filter(({ jobRank }) => host === `h${jobRank}`) },
      ]),
    ),
  });
  return [add(first), add(second)];
}

/** A message waits, and there is room for it. */
function blocked(from: number, to: number): RankEdge[] {
  return [edge(from, to, true, { handed: 9 }), edge(from, to, false, { handed: 12 })];
}

function healthy(from: number, to: number): RankEdge[] {
  return [edge(from, to, true), edge(from, to, false, { handed: 12 })];
}

describe('the memory of a process', () => {
  test('edges are read with what they have carried, those on which something waits first', () => {
    const memory = new RecorderMemory(2)
      .edge(0, 2n, { peer: 1, sends: false, handed: 9, carried: 5, bytes: 5000 })
      .edge(3, 4n, { peer: 3, sends: true, handed: 7, carried: 6, wire: [123, 4_000_000], nic: 'mlx5_0', channel: 1 });
    expect(rankEdges([memory.bytes])).toMatchObject([
      { jobRank: 2, rank: 2, peer: 3, sends: true, channel: 1, nic: 'mlx5_0', wire: { bytes: 123, busyUs: 4000 } },
      { jobRank: 2, peer: 1, sends: false, handed: 9, carried: 5, bytes: 5000, idleUs: null, wire: null },
    ]);
  });

  test('places that are free, being written or of a rank that does not exist are left out', () => {
    const counters = { peer: 1, sends: true, handed: 1, carried: 1 };
    const memory = new RecorderMemory(0)
      .edge(0, 0n, counters)
      .edge(1, 3n, counters)
      .edge(2, 4n, { ...counters, peer: 4 });
    expect(rankEdges([memory.bytes, Buffer.alloc(100)])).toEqual([]);
  });

  test('bytes of any kind lead to numbers that are none, or to whole ones', () => {
    const random = seededRandom(3);
    for (let round = 0; round < 50; round++) {
      const memory = new RecorderMemory(0).edge(0, 2n, { peer: 1, sends: true, handed: 1, carried: 1 });
      for (let hit = 0; hit < 600; hit++) memory.bytes[memory.bytes.length - 1 - random(8 * 128)] = random(256);
      for (const { bytes, handed, peer } of rankEdges([memory.bytes]))
        expect([bytes, handed, peer].every(Number.isSafeInteger)).toBe(true);
    }
  });
});

describe('connections that carry nothing', () => {
  test('a message that was handed over and has not arrived, though there is room, blocks a connection', () => {
    const found = blockedEdges(...withEdges(2, [...blocked(0, 1), ...healthy(1, 0)]));
    expect(found).toMatchObject([{ from: { rank: 0, host: 'h0' }, to: { rank: 1, host: 'h1' }, messages: 1 }]);
  });

  test('a receiver without room, or a connection that has moved, is not blocked', () => {
    const noRoom = [edge(0, 1, true, { handed: 9 }), edge(0, 1, false)];
    expect(blockedEdges(...withEdges(2, noRoom))).toEqual([]);
    const [first] = withEdges(2, healthy(0, 1));
    const [, second] = withEdges(2, blocked(0, 1));
    expect(blockedEdges(first, second)).toEqual([]);
  });

  test('the host that all of them have in common is blamed, with its NIC in the sentence', () => {
    const edges = [...blocked(0, 1), ...blocked(1, 2), ...healthy(2, 0)];
    const [first, second] = withEdges(3, edges);
    expect(commonHost(blockedEdges(first, second))).toBe('h1');
    const [hang] = judgeHangs(first, second);
    expect(hang?.verdict).toMatchObject({
      kind: 'stuck-inside',
      confidence: 'likely',
      blamed: [{ ranks: '1', host: 'h1' }],
    });
    expect(hang?.verdict.message).toContain(
      'a message from rank 0 on h0 to rank 1 on h1 (eth0 to eth0) has not arrived, and nothing has for 4.2 s',
    );
  });

  test('two hosts that are cut from each other get one sentence with the number of connections, and evidence of each', () => {
    const channels = [0, 1].flatMap((channel) =>
      [...blocked(0, 1), ...blocked(1, 0)].map((one) => ({ ...one, channel, idleUs: 4_200_000 + channel * 100_000 })),
    );
    const [hang] = judgeHangs(...withEdges(3, [...channels, ...blocked(1, 2), ...healthy(2, 0)]));
    const { message = '', evidence = [] } = hang?.verdict ?? {};
    expect(message.match(/ha(?:s|ve) not arrived/g)).toHaveLength(2);
    expect(message).toContain(
      'messages on 4 connections between h0 and h1 (eth0 to eth0) have not arrived, and nothing has for 4.2 s',
    );
    expect(message).toContain('a message from rank 1 on h1 to rank 2 on h2 (eth0 to eth0) has not arrived');
    expect(evidence.filter(({ kind }) => kind === 'connection')).toHaveLength(5);
  });

  test('several connections from one host to another are said to be blocked that way', () => {
    const channels = [0, 1].flatMap((channel) => blocked(0, 1).map((one) => ({ ...one, channel, idleUs: null })));
    const [hang] = judgeHangs(...withEdges(2, [...channels, ...healthy(1, 0)]));
    expect(hang?.verdict.message).toMatch(/messages on 2 connections from h0 to h1 \(eth0 to eth0\) have not arrived$/);
  });

  test('the sender of a single connection is blamed', () => {
    const [hang] = judgeHangs(...withEdges(3, [...blocked(2, 0), ...healthy(0, 1), ...healthy(1, 2)]));
    expect(hang?.verdict.blamed).toMatchObject([{ ranks: '2', host: 'h2' }]);
  });
});

describe('links that are slow', () => {
  const MB = 1e6;
  /** Megabytes, and seconds in which they were under way, of the ring's link from each rank to the next, after ten seconds. */
  function slow(...links: readonly (readonly [megabytes: number, seconds: number])[]): ReturnType<typeof slowLinkIn> {
    const answer = (seconds: number): Map<string, { readonly where: HostRankPositions }> => {
      const edges = links.flatMap(([megabytes, busy], from) => {
        const to = (from + 1) % links.length;
        const wire = { bytes: megabytes * MB * seconds, busyUs: busy * 1e6 * seconds, retransmits: 0 };
        return [edge(from, to, true, { wire }), edge(from, to, false)];
      });
      const [, { answers }] = withEdges(links.length, edges);
      return new Map(
        Array.from(answers, ([host, where]) => [host, { where: { ...where, monotonicUs: seconds * 10_000_000 } }]),
      );
    };
    return slowLinkIn(linksBetween(answer(1), answer(2)));
  }

  test('links that carry about the same are not slow', () => {
    expect(slow([100, 5], [100, 6], [100, 4], [100, 5])).toBeNull();
  });

  test('a link that needs much longer for the same is named with its rate', () => {
    const found = slow([100, 1], [100, 9], [100, 1.1], [100, 1]);
    expect(found).toMatchObject({ nic: null, link: { from: { host: 'h1' }, to: { host: 'h2' } }, others: 3 });
    expect(found === null ? null : slowLinkVerdict(found, [])).toMatchObject({
      kind: 'slow-link',
      blamed: [
        { ranks: '1', host: 'h1' },
        { ranks: '2', host: 'h2' },
      ],
      message:
        'the link from h1 (eth0) to h2 (eth0) carries 11 MB/s while it has something to carry, the median of 3 others 100 MB/s; it was busy 90 % of the time',
    });
  });

  test('a NIC is named where both of its links are slow, and others are not', () => {
    expect(slow([100, 8], [100, 9], [100, 1], [100, 1])).toMatchObject({ nic: { host: 'h1', nic: 'eth0' } });
    expect(slow([100, 4], [100, 9], [100, 1], [100, 1])).toMatchObject({ nic: null });
  });

  test('packets that were sent again are summed up over the connections of a link, since the first answer', () => {
    const answer = (retransmits: number, monotonicUs: number) => {
      const wire = { bytes: retransmits * MB, busyUs: retransmits, retransmits };
      const edges = [edge(0, 1, true, { wire }), edge(0, 1, false), edge(1, 0, true), edge(1, 0, false)];
      const [, { answers }] = withEdges(2, edges);
      return new Map(Array.from(answers, ([host, where]) => [host, { where: { ...where, monotonicUs } }]));
    };
    const links = linksBetween(answer(2, 1_000_000), answer(7, 2_000_000));
    expect(links.find(({ from }) => from.host === 'h0')).toMatchObject({ retransmits: 5, bytes: 5 * MB });
  });

  test('packets that were sent again are in the sentence and the evidence, where there are any', () => {
    const found = slow([100, 1], [100, 9], [100, 1.1], [100, 1]);
    if (found === null) throw new Error('no link is slow');
    const verdict = (retransmits: number) =>
      slowLinkVerdict({ ...found, links: [{ ...found.link, retransmits }], link: { ...found.link, retransmits } }, []);
    const kinds = (retransmits: number) => verdict(retransmits).evidence.map(({ kind }) => kind);
    expect(kinds(0)).toEqual(['edge-rate', 'edge-busy']);
    expect(kinds(1)).toEqual(['edge-rate', 'edge-busy', 'retransmits']);
    expect(verdict(0).message).toMatch(/busy 90 % of the time$/u);
    expect(verdict(2).message).toMatch(/busy 90 % of the time, and 2 packets were sent again$/u);
  });

  test('a link that is seldom busy, or has carried little, is not slow', () => {
    expect(slow([100, 0.1], [100, 1], [100, 0.1], [100, 0.1])).toBeNull();
    expect(slow([3, 0.1], [3, 9], [3, 0.1], [3, 0.1])).toBeNull();
    expect(slow([4, 0.1], [4, 9], [4, 0.1], [4, 0.1])).not.toBeNull();
    expect(slow([100, 1], [100, 3], [100, 1], [100, 1])).not.toBeNull();
    expect(slow([100, 1], [100, 2.9], [100, 1], [100, 1])).toBeNull();
    expect(slow([100, 4], [100, 6], [100, 4], [100, 4])).not.toBeNull();
    expect(slow([100, 4], [100, 5.9], [100, 4], [100, 4])).toBeNull();
  });
});
