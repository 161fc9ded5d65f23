/** Which variants and transports each device has, and where what lies in a host segment. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import { canBeMessages, isVariantBetweenGpuHosts, isVariantOf, TRANSPORTS_OF } from '../../control/plan/possible.ts';
import { connectionBytes, layOutSegment } from '../../control/plan/segment.ts';
import { readU64, writeU64 } from '../../control/plan/u64.ts';
import type { AlgorithmName, DeviceName, ProtocolName, Precondition } from '../../control/plan/types.ts';
import { gpuPlan, samplePlan } from '../rig/plans.ts';

const ALGORITHMS: readonly AlgorithmName[] = [
  'ring',
  'tree',
  'directTwoShot',
  'directOneShot',
  'copyEngine',
  'collnet',
  'collnetChain',
];
const PROTOCOLS: readonly ProtocolName[] = ['simple', 'll', 'll128'];

/** By collective: its algorithms, each with its protocols. */
function variants(device: DeviceName, requires: readonly Precondition[]): string[] {
  return COLLECTIVES.map((collective) => {
    const all = ALGORITHMS.map((algorithm) => {
      const protocols = PROTOCOLS.filter((protocol) =>
        isVariantOf(device, collective, { algorithm, protocol, requires: [...requires] }),
      );
      return protocols.length === 0 ? [] : [`${algorithm}.${protocols.join('+')}`];
    });
    return `${collective}: ${all.flat().join(' ')}`;
  });
}

const messages = 'ring.P tree.P directTwoShot.P directOneShot.P copyEngine.P';

const all = (device: DeviceName, algorithm: AlgorithmName, protocol: ProtocolName): string[] =>
  COLLECTIVES.filter((collective) => canBeMessages(device, collective, { algorithm, protocol }));

describe('the variants that exist', () => {
  test.each<readonly [DeviceName, string, readonly Precondition[], string]>([
    ['host', 'simple+ll', [], ''],
    ['host', 'simple+ll', ['publishedAddresses'], ''],
    ['cuda', 'simple+ll+ll128', ['registeredBuffers'], ''],
    ['cuda', 'simple+ll+ll128', ['publishedAddresses'], ' copyEngine.P'],
  ])('the %s device has %s with requirements %j', (device, protocols, requires, copies) => {
    const sendRecv = device === 'host' ? messages.replaceAll('P', 'simple') : messages.replaceAll('P', protocols);
    const withCopies = sendRecv.split(' ').filter((one) => copies !== '' || !one.startsWith('copyEngine'));
    const rows = [
      `allReduce: ring.P tree.P directTwoShot.P directOneShot.P${copies}`,
      `allGather: ring.P directOneShot.P${copies}`,
      `reduceScatter: ring.P directOneShot.P${copies}`,
      `broadcast: ring.P tree.P directOneShot.P${copies}`,
      'reduce: ring.P tree.P directOneShot.P',
      `allToAll: directOneShot.P${copies}`,
      `gather: directOneShot.P${copies}`,
      `scatter: directOneShot.P${copies}`,
      `sendRecv: ${withCopies.join(' ')}`,
      'barrier: ring.P directOneShot.P',
    ];
    expect(variants(device, requires)).toEqual(rows.map((row) => row.replaceAll('P', protocols)));
  });

  test.each<DeviceName>(['host', 'cuda'])('the %s device has all-reduces that the network reduces', (device) => {
    const found = variants(device, ['networkReduction']).filter((row) => row.includes('collnet'));
    expect(found).toEqual([expect.stringMatching(/^allReduce: .* collnet\.simple collnetChain\.simple$/u)]);
    expect(variants(device, []).filter((row) => row.includes('collnet'))).toEqual([]);
  });

  test('operations that move data can be messages on GPUs, directly and by protocol Simple', () => {
    expect(all('cuda', 'directOneShot', 'simple')).toEqual(['allGather', 'broadcast', 'allToAll', 'gather', 'scatter']);
    expect(all('host', 'directOneShot', 'simple')).toEqual([]);
    expect(all('cuda', 'ring', 'simple')).toEqual([]);
    expect(all('cuda', 'directOneShot', 'll')).toEqual([]);
  });

  test('GPUs of several hosts have variants on the channels that their pairs have', () => {
    const algorithms = (collective: (typeof COLLECTIVES)[number], ranks: number, channels: number): string[] =>
      ALGORITHMS.filter((algorithm) => {
        const variant = { algorithm, protocol: 'simple', requires: [], asMessages: false, channels } as const;
        return isVariantBetweenGpuHosts(collective, variant, { ranks, pairChannels: 4 });
      });
    const direct = ['directTwoShot', 'directOneShot'];
    expect(algorithms('allReduce', 16, 4)).toEqual(['ring', 'tree', ...direct]);
    expect(algorithms('allReduce', 17, 4)).toEqual(['ring', 'tree']);
    expect(algorithms('allReduce', 16, 5)).toEqual(['ring']);
    expect(algorithms('allGather', 16, 4)).toEqual(['ring', 'directOneShot']);
    expect(algorithms('sendRecv', 17, 5)).toEqual(['directOneShot']);
    expect(algorithms('allToAll', 8, 1)).toEqual([]);
    expect(algorithms('barrier', 8, 1)).toEqual(ALGORITHMS);
    const bulk = {
      algorithm: 'directOneShot',
      protocol: 'simple',
      requires: [],
      asMessages: true,
      channels: 1,
    } as const;
    const ll = { ...bulk, protocol: 'll', requires: ['hostSlots'] } as const;
    const ringByLL = { ...ll, algorithm: 'ring', asMessages: false } as const;
    expect(isVariantBetweenGpuHosts('allToAll', ll, { ranks: 65, pairChannels: 1 })).toBe(true);
    expect(isVariantBetweenGpuHosts('allReduce', ringByLL, { ranks: 65, pairChannels: 1 })).toBe(true);
    expect(isVariantBetweenGpuHosts('allReduce', { ...ringByLL, channels: 2 }, { ranks: 65, pairChannels: 1 })).toBe(
      false,
    );
    expect(isVariantBetweenGpuHosts('allToAll', bulk, { ranks: 65, pairChannels: 1 })).toBe(true);
    expect(isVariantBetweenGpuHosts('allToAll', { ...bulk, algorithm: 'ring' }, { ranks: 8, pairChannels: 1 })).toBe(
      false,
    );
    expect(isVariantBetweenGpuHosts('allReduce', bulk, { ranks: 8, pairChannels: 1 })).toBe(false);
    expect(isVariantBetweenGpuHosts('allToAll', { ...bulk, protocol: 'll' }, { ranks: 8, pairChannels: 1 })).toBe(
      false,
    );
  });

  test('processors have shared memory and networks, GPUs peer access, shared memory and networks', () => {
    expect(TRANSPORTS_OF).toEqual({
      host: { sameHost: ['shm', 'socket', 'ib'], otherHost: ['socket', 'ib'] },
      cuda: { sameHost: ['p2p', 'shm'], otherHost: ['socket', 'ib'] },
    });
  });
});

describe('the host segment', () => {
  test('every part has its offset and its size', () => {
    const sample = samplePlan();
    const overSockets = { ...sample, transports: { sameHost: 'socket', otherHost: 'socket' } } as const;
    expect([
      layOutSegment(sample, 3, 2),
      layOutSegment(overSockets, 3, 0),
      layOutSegment(gpuPlan(2), 2, 0),
      layOutSegment(gpuPlan(4), 4, 1),
    ]).toMatchInlineSnapshot(`
      [
        {
          "abortOffset": 0,
          "barrierOffset": 704,
          "doorbellOffset": 512,
          "pairOffset": 4096,
          "pairStride": 36864,
          "ringOffset": 335872,
          "ringStride": 69632,
          "totalBytes": 475136,
        },
        {
          "abortOffset": 0,
          "barrierOffset": 704,
          "doorbellOffset": 512,
          "pairOffset": 4096,
          "pairStride": 36864,
          "ringOffset": 4096,
          "ringStride": 69632,
          "totalBytes": 4096,
        },
        {
          "abortOffset": 0,
          "barrierOffset": 640,
          "doorbellOffset": 512,
          "pairOffset": 8192,
          "pairStride": 96501760,
          "ringOffset": 386015232,
          "ringStride": 1085440,
          "totalBytes": 386015232,
        },
        {
          "abortOffset": 0,
          "barrierOffset": 768,
          "doorbellOffset": 512,
          "pairOffset": 24576,
          "pairStride": 67141632,
          "ringOffset": 1074290688,
          "ringStride": 1085440,
          "totalBytes": 1075376128,
        },
      ]
    `);
    expect(connectionBytes({ steps: 2, stepBytes: 64 })).toMatchInlineSnapshot(`36864`);
    expect(connectionBytes({ steps: 8, stepBytes: 4160 })).toMatchInlineSnapshot(`69632`);
  });

  test('a segment whose size is no safe number is refused', () => {
    const huge = { ...samplePlan(), ringBuffer: { steps: 16, stepBytes: 2 ** 26 } };
    expect(() => layOutSegment(huge, 5, 2 ** 24)).toThrow(
      /^the shared memory of 5 ranks of one host would have \d+ bytes$/,
    );
  });
});

const digest = (bytes: Uint8Array): string => `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`;

test('the engines get the same bytes for the same plan', () => {
  const plans = [samplePlan(), gpuPlan(3), gpuPlan(4, 2)];
  expect(
    plans.flatMap((plan) => plan.hosts.map((_, host) => digest(encodeHostPlan(plan, host)))),
  ).toMatchInlineSnapshot(`
    [
      "2136 181c155aa4cae6eea0627a0ba9cf0cc9d31652810c4f1b0825e81303d68ab39a",
      "1880 756557831dbe1eb64409223948a41de6c9e8de2b2890cb58fe1196561e563e54",
      "11952 a35a52020ad5637e3e107289a13324dcb34879fdf6c80bd7c07bc744ce5ae34a",
      "6368 95f58f5aa2d31463dccc06e6ecfd8f50e181f4bb76fd769f3d052ed0b30dae40",
      "6368 3ee5d46960fa5266ee0139f553c76bbb5cff054fe82c2624ca5f4256ec0cca72",
    ]
  `);
});

test('a host plan begins with its magic, and numbers have 64 bits', () => {
  const bytes = encodeHostPlan(samplePlan(), 0);
  const begins = [3, 4, bytes.length].map((length) => isHostPlan(bytes.subarray(0, length)));
  expect(begins).toEqual([false, true, true]);
  expect(isHostPlan(bytes.map((byte, at) => (at === 3 ? byte + 1 : byte)))).toBe(false);
  const view = new DataView(new ArrayBuffer(16));
  const values = [0, 5, 2 ** 32 - 1, 2 ** 32, 2 ** 33 + 7, Number.MAX_SAFE_INTEGER];
  const numbers = values.map((value) => {
    writeU64(view, 4, value);
    return [view.getBigUint64(4, true), readU64(view, 4)];
  });
  expect(numbers).toEqual(values.map((value) => [BigInt(value), value]));
});
