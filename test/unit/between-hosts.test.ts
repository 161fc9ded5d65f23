/** What the model predicts between hosts: traffic of each algorithm, and times beside those that were measured. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import type { AlgorithmName, CollectiveName } from '../../control/plan/types.ts';
import { termsOf, UNKNOWN_RATES } from '../../control/planner/device/between-terms.ts';
import { NO_REDUCTION } from '../../control/planner/input/network-reduction.ts';
import { predictBetween } from '../../control/planner/tuning/between.ts';
import { trafficBetween } from '../../control/planner/tuning/traffic.ts';
import { compared, ratiosText, timesOfTable, timesOfTsv } from '../../bench/predicted-times.ts';
import { parseTable } from '../../control/planner/measured/table.ts';
import { repository } from '../rig/cluster.ts';

const measured = timesOfTsv(readFileSync(join(repository, 'test/unit/fixtures/between-hosts.tsv'), 'utf8'));

describe('predicted times', () => {
  it.each([
    ['cuda', 84, 0.6, 1.45],
    ['host', 86, 0.44, 1.9],
  ] as const)(
    'the model predicts the measured times of device %s within its stated bounds',
    (device, count, least, most) => {
      const ratios = compared(measured.filter((time) => time.device === device)).map(({ ratio }) => ratio);
      expect(ratios).toHaveLength(count);
      expect(Math.min(...ratios)).toBeGreaterThan(least);
      expect(Math.max(...ratios)).toBeLessThan(most);
    },
  );

  it('the comparison prints the ratios of each algorithm, and their spread', () => {
    const lines = ratiosText(compared(measured)).trimEnd().split('\n');
    expect(lines).toContainEqual(expect.stringMatching(/^cuda 2x2 allReduce rail +65536:0\.\d+ /u));
    expect(lines.at(-1)).toMatch(
      /^170 times: least 0\.\d+, a tenth below [\d.]+, median [\d.]+, a tenth above [\d.]+, greatest [\d.]+$/u,
    );
  });

  it('the comparison reads a table, each algorithm with its fastest number of channels', () => {
    const ring = { algorithm: 'ring', protocol: 'simple', threads: 64 };
    const key = {
      device: 'host',
      ranks: 4,
      topology: null,
      processor: null,
      cores: 2,
      gpu: null,
      computeCapability: null,
      driver: null,
      between: {
        hosts: 2,
        layout: '2x2',
        network: 'Socket',
        nics: 1,
        speedMbps: 10_000,
        isOneMachine: false,
        sockets: 1,
        socketThreads: 0,
      },
    };
    const variants = [
      { ...ring, channels: 1, times: [[1024, 40]] },
      { ...ring, channels: 2, times: [[1024, 30]] },
      { ...ring, protocol: 'll', channels: 1, times: [[1024, 1]] },
    ];
    const table = {
      formatVersion: 1,
      key,
      measuredAt: '',
      version: '',
      collectives: [{ collective: 'allReduce', variants }],
    };
    const times = timesOfTable(parseTable(JSON.stringify(table)));
    expect(times).toMatchObject([
      { layout: '2x2', algorithm: 'ring', bytes: 1024, microseconds: 30, speedMbps: 10_000 },
    ]);
    const { between: _, ...inside } = key;
    const oneHost = parseTable(JSON.stringify({ ...table, key: inside }));
    expect(() => timesOfTable(oneHost)).toThrow('the table is of one host');
  });
});

/** Of 4 hosts of 2 ranks: hops between hosts and inside, what the busiest rank and a host send. */
const traffic: readonly (readonly [CollectiveName, AlgorithmName, readonly number[] | null])[] = [
  ['allReduce', 'ring', [7, 7, 1.75, 1.75]],
  ['allReduce', 'tree', [4, 2, 3, 3]],
  ['allReduce', 'rail', [2, 2, 0.75, 1.5]],
  ['allReduce', 'directOneShot', [1, 0, 6, 12]],
  ['allReduce', 'directTwoShot', [2, 0, 1.5, 3]],
  ['allGather', 'ring', [3.5, 3.5, 0.875, 0.875]],
  ['allGather', 'rail', [1, 1, 0.375, 0.75]],
  ['allGather', 'directOneShot', [1, 0, 0.75, 1.5]],
  ['reduceScatter', 'ring', [3.5, 3.5, 0.875, 0.875]],
  ['broadcast', 'ring', [3.5, 3.5, 1, 1]],
  ['broadcast', 'tree', [2, 1, 2, 2]],
  ['broadcast', 'directOneShot', [1, 0, 6, 6]],
  ['gather', 'directOneShot', [1, 0, 0.75, 0.75]],
  ['sendRecv', 'directOneShot', [1, 0, 1, 2]],
  ['allGather', 'tree', null],
  ['broadcast', 'rail', null],
  ['allToAll', 'ring', null],
  ['broadcast', 'directTwoShot', null],
  ['allReduce', 'copyEngine', null],
  ['barrier', 'directOneShot', null],
];
test.each(traffic)('%s by %s has this traffic between hosts', (collective, algorithm, expected) => {
  const found = trafficBetween(collective, algorithm, { ranks: 8, hosts: 4 });
  const seen = found === null ? null : [found.hopsBetween, found.hopsInside, found.between, found.ofHost];
  expect(seen).toEqual(expected);
});

describe('terms of the model', () => {
  const options = { corrections: {}, channels: 16, pairChannels: 8, load: 1 } as const;
  const network = {
    name: 'Socket',
    sockets: 1,
    socketThreads: 0,
    rails: 2,
    speedMbps: 25_000,
    isOneMachine: false,
    reduction: NO_REDUCTION,
    socketMbps: 25_000,
  };
  const extent = { ranks: 4, hosts: 2 };

  it('the NICs limit what a host sends', () => {
    expect(termsOf('cuda', { nicRate: 99, linkRate: 99 }, { ...options, network }).nicRate).toBe(6250);
    expect(
      termsOf('cuda', { nicRate: 99, linkRate: 99 }, { ...options, network: { ...network, speedMbps: 0 } }).nicRate,
    ).toBe(99);
    expect(
      termsOf('cuda', { nicRate: 99, linkRate: 99 }, { ...options, network: { ...network, isOneMachine: true } })
        .nicRate,
    ).toBeNull();
    const slow = predictBetween(
      'allReduce',
      'rail',
      extent,
      termsOf('cuda', { nicRate: 100, linkRate: 100 }, { ...options, network: null }),
    );
    expect(slow?.bytesPerMicrosecond).toBe(100);
  });

  it('ranks reach aggregators by a single NIC, over sockets', () => {
    const linkRate = (facts: Partial<typeof network>): number | null =>
      termsOf('host', { nicRate: 800, linkRate: 400 }, { ...options, network: { ...network, ...facts } }).linkRate;
    expect(linkRate({})).toBe(3125);
    expect(linkRate({ socketMbps: 0 })).toBe(400);
    expect(linkRate({ name: 'IB', speedMbps: 400_000 })).toBe(3125);
    expect(linkRate({ name: 'IB', speedMbps: 400_000, socketMbps: 0 })).toBe(1250); // a NIC of 10 Gb/s, as NCCL assumes
    expect(linkRate({ isOneMachine: true })).toBeNull();
    expect(termsOf('host', { nicRate: 800, linkRate: 400 }, { ...options, network: null }).linkRate).toBe(400);
  });

  it('corrections and shared cores change the predicted time', () => {
    const terms = termsOf('host', UNKNOWN_RATES, { ...options, network: null });
    const plain = predictBetween('allReduce', 'rail', extent, terms);
    const corrections = { rail: { latency: 2, bandwidth: 4 } };
    const other = predictBetween('allReduce', 'rail', extent, { ...terms, corrections });
    expect(other?.microseconds).toBeCloseTo(2 * (plain?.microseconds ?? 0));
    expect(other?.bytesPerMicrosecond).toBeCloseTo((plain?.bytesPerMicrosecond ?? 0) / 4);
    const loaded = predictBetween('allReduce', 'rail', extent, { ...terms, load: 3 });
    expect(loaded?.microseconds).toBeCloseTo(3 * (plain?.microseconds ?? 0));
  });
});
