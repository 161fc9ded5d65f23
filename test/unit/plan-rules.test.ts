/** What a plan must keep: each rule's limits, both sides of them, and its sentence. */
import { describe, expect, test } from 'vitest';
import { planFromJson } from '../../control/plan/json.ts';
import { COPY_TIMEOUTS } from '../../control/plan/types.ts';
import type { CommPlan, TuningRow, Variant } from '../../control/plan/types.ts';
import { PlanError, validatePlan } from '../../control/plan/validate.ts';
import { gpuPlan, samplePlan } from '../rig/plans.ts';

type Change = (plan: CommPlan) => CommPlan;

const plain: Variant = {
  algorithm: 'ring',
  protocol: 'simple',
  channels: 1,
  chunkBytes: 1,
  threads: 64,
  requires: [],
  asMessages: false,
  predictedMicroseconds: 0,
  predictedMicrosecondsPerMebibyte: 0,
};
const tuning =
  (...rows: TuningRow[]): Change =>
  (plan) => ({ ...plan, tuning: rows });
const variant = (changes: Partial<Variant>): Change =>
  tuning({ collective: 'allReduce', upToBytes: null, variants: [{ ...plain, ...changes }] });
const peer =
  (changes: Partial<CommPlan['peers'][number]>): Change =>
  (plan) => ({ ...plan, peers: plan.peers.map((one, rank) => (rank === 4 ? { ...one, ...changes } : one)) });
const host =
  (changes: Partial<CommPlan['hosts'][number]>): Change =>
  (plan) => ({ ...plan, hosts: plan.hosts.map((one, index) => (index === 1 ? { ...one, ...changes } : one)) });
const nic =
  (changes: Partial<CommPlan['hosts'][number]['nics'][number]>): Change =>
  (plan) =>
    host({ nics: (plan.hosts[1]?.nics ?? []).map((one, index) => (index === 1 ? { ...one, ...changes } : one)) })(plan);
const channel =
  (changes: Partial<CommPlan['channels'][number]>): Change =>
  (plan) => ({ ...plan, channels: plan.channels.map((one, index) => (index === 2 ? { ...one, ...changes } : one)) });
const channels =
  (count: number): Change =>
  (plan) => ({
    ...plan,
    channels: Array.from({ length: count }, (_, index) => plan.channels[index % 3] ?? { ring: [], tree: [], rail: 0 }),
  });
const set =
  (changes: Partial<CommPlan>): Change =>
  (plan) => ({ ...plan, ...changes });

const row = (upToBytes: number | null, collective: TuningRow['collective'] = 'allReduce'): TuningRow => ({
  collective,
  upToBytes,
  variants: [plain],
});
const longest = { minMicroseconds: 0, maxMicroseconds: 1e9, capturedMicroseconds: 0 };

describe('a plan for processors', () => {
  test.each<[string, Change]>([
    ['256 channels', channels(256)],
    [
      'the least and the largest slots',
      set({ ringBuffer: { steps: 2, stepBytes: 64 }, pairBuffer: { steps: 16, stepBytes: 2 ** 26 } }),
    ],
    ['as many SMs as channels', set({ smsPerLaunch: 3, copyChannels: 3 })],
    ['one SM', set({ smsPerLaunch: 1, copyChannels: 1 })],
    ['the longest and the shortest times', set({ spinNanoseconds: 1e9, copyTimeouts: longest })],
    ['no time to poll', set({ spinNanoseconds: 0 })],
    ['rows that rise', tuning(row(0), row(1), row(null), row(null, 'barrier'))],
    ['a row per collective', tuning(row(null, 'reduce'), row(5), row(null))],
    ['the largest variant', variant({ channels: 3, chunkBytes: 2 ** 40, threads: 4096 })],
    ['the smallest variant', variant({})],
    ['the last port', peer({ listenPort: 65_535 })],
    ['the fastest NIC', nic({ speedMbps: 0xffff_ffff, port: 0xfffe })],
    ['an unknown NIC', nic({ speedMbps: 0, port: 0 })],
    ['the most sockets', set({ network: { name: 'Socket', sockets: 63, socketThreads: 16 } })],
    ['the fewest sockets', set({ network: { name: 'Socket', sockets: 1, socketThreads: 0 } })],
    [
      'one tree that all channels share',
      (plan) => ({ ...plan, channels: plan.channels.map((one) => ({ ...one, tree: [0, 0, 0, 1, 2] })) }),
    ],
  ])('a plan with %s is valid', (_, change) => {
    expect(() => validatePlan(change(samplePlan()))).not.toThrow();
  });

  test.each<readonly [change: Change, message: string]>([
    [set({ peers: [] }), 'peers: a communicator has at least one rank'],
    [set({ hosts: [] }), 'hosts: a communicator has at least one host'],
    [set({ channels: [] }), 'channels: at least one is needed'],
    [channels(257), 'channels: 257, at most 256 are possible'],
    [peer({ host: 2 }), 'peers[4].host: 2, there are 2 hosts'],
    [peer({ listenPort: 65_536 }), 'peers[4].listenPort: 65536, expected a whole number from 0 to 65535'],
    [peer({ listenPort: -1 }), 'peers[4].listenPort: -1, expected a whole number from 0 to 65535'],
    [peer({ listenPort: 0 }), 'peers[4].listenPort: rank 4 on node0 listens on no port, but 2 hosts take part'],
    [(plan) => ({ ...plan, peers: plan.peers.map((one) => ({ ...one, host: 0 })) }), 'hosts[1]: knoten-ö has no rank'],
    [host({ name: '' }), 'hosts[1].name: is empty'],
    [host({ address: 'there' }), "hosts[1].address: 'there' of knoten-ö is no numeric IPv4 or IPv6 address"],
    [channel({ ring: [0, 2, 4, 1] }), 'channels[2].ring: has 4 entries for 5 ranks'],
    [channel({ ring: [0, 2, 4, 1, 1] }), 'channels[2].ring[4]: rank 1 comes twice'],
    [channel({ ring: [0, 2, 4, 1, 5] }), 'channels[2].ring[4]: 5 is no rank (0..4)'],
    [channel({ ring: [0, 1, 2, 3, 4] }), 'channels[2].ring[3]: comes to the host of rank 3 a second time'],
    [channel({ tree: [0, 0, 0, 1] }), 'channels[2].tree: has 4 entries for 5 ranks'],
    [channel({ tree: [0, 0, 0, 1, 5] }), 'channels[2].tree[4]: 5 is no rank (0..4)'],
    [channel({ tree: [0, 0, 0, 1, -1] }), 'channels[2].tree[4]: -1 is no rank (0..4)'],
    [channel({ tree: [0, 0, 0, 1, 0.5] }), 'channels[2].tree[4]: 0.5 is no rank (0..4)'],
    [channel({ tree: [0, 0, 0, 0, 2] }), 'channels[2].tree[3]: ranks 1 and 3 of one host have nobody of it above them'],
    [channel({ tree: [0, 1, 0, 1, 2] }), 'channels[2].tree: 2 ranks have nobody above them, exactly one has to'],
    [channel({ tree: [4, 0, 0, 1, 2] }), 'channels[2].tree[2]: goes round in a circle'],
    [set({ ringBuffer: { steps: 1, stepBytes: 64 } }), 'ringBuffer.steps: 1, expected a whole number from 2 to 16'],
    [set({ pairBuffer: { steps: 17, stepBytes: 64 } }), 'pairBuffer.steps: 17, expected a whole number from 2 to 16'],
    [
      set({ ringBuffer: { steps: 2, stepBytes: 63 } }),
      'ringBuffer.stepBytes: 63, expected a whole number from 64 to 67108864',
    ],
    [set({ ringBuffer: { steps: 2, stepBytes: 96 } }), 'ringBuffer.stepBytes: 96 is no multiple of 64'],
    [
      set({ pairBuffer: { steps: 2, stepBytes: 2 ** 26 + 64 } }),
      'pairBuffer.stepBytes: 67108928, expected a whole number from 64 to 67108864',
    ],
    [
      set({ transports: { sameHost: 'p2p', otherHost: 'socket' } }),
      'transports.sameHost: p2p; between ranks of one host the host device has shm and socket and ib',
    ],
    [
      set({ transports: { sameHost: 'shm', otherHost: 'shm' } }),
      'transports.otherHost: shm; between ranks of different hosts the host device has socket and ib',
    ],
    [set({ network: null }), 'network: is missing; a connection of the plan needs it'],
    [set({ network: { name: '', sockets: 1, socketThreads: 0 } }), 'network.name: is empty'],
    [
      set({ network: { name: 'Socket', sockets: 0, socketThreads: 0 } }),
      'network.sockets: 0, expected a whole number from 1 to 63',
    ],
    [
      set({ network: { name: 'Socket', sockets: 1, socketThreads: -1 } }),
      'network.socketThreads: -1, expected a whole number from 0 to 16',
    ],
    [nic({ name: '' }), 'hosts[1].nics[1].name: is empty'],
    [
      nic({ speedMbps: 2 ** 32 }),
      'hosts[1].nics[1].speedMbps: 4294967296, expected a whole number from 0 to 4294967295',
    ],
    [nic({ speedMbps: -1 }), 'hosts[1].nics[1].speedMbps: -1, expected a whole number from 0 to 4294967295'],
    [nic({ port: 0xffff }), 'hosts[1].nics[1].port: 65535, expected a whole number from 0 to 65534'],
    [nic({ port: -1 }), 'hosts[1].nics[1].port: -1, expected a whole number from 0 to 65534'],
    [channel({ rail: 2 }), 'channels[2].rail: 2, expected a whole number from 0 to 1'],
    [channel({ rail: -1 }), 'channels[2].rail: -1, expected a whole number from 0 to 1'],
    [peer({ pairNic: 2 }), 'peers[4].pairNic: 2, expected a whole number from 0 to 1'],
    [peer({ pairNic: -1 }), 'peers[4].pairNic: -1, expected a whole number from 0 to 1'],
    [peer({ pairNic: null }), 'peers[4].pairNic: 65534, expected a whole number from 0 to 1'],
    [host({ nics: [] }), 'hosts[1].nics: knoten-ö has none, and a connection of the plan needs one'],
    [set({ smsPerLaunch: 0 }), 'smsPerLaunch: 0, expected a whole number from 1 to 3'],
    [set({ smsPerLaunch: 4 }), 'smsPerLaunch: 4, expected a whole number from 1 to 3'],
    [set({ copyChannels: 0 }), 'copyChannels: 0, expected a whole number from 1 to 3'],
    [set({ smsPerLaunch: 2, copyChannels: 3 }), 'copyChannels: 3, expected a whole number from 1 to 2'],
    [
      set({ copyTimeouts: { ...longest, maxMicroseconds: 1e9 + 1 } }),
      'copyTimeouts.maxMicroseconds: 1000000001, expected a whole number from 0 to 1000000000',
    ],
    [
      set({ copyTimeouts: { ...longest, minMicroseconds: -1 } }),
      'copyTimeouts.minMicroseconds: -1, expected a whole number from 0 to 1000000000',
    ],
    [set({ spinNanoseconds: 1e9 + 1 }), 'spinNanoseconds: 1000000001, expected a whole number from 0 to 1000000000'],
    [set({ spinNanoseconds: -1 }), 'spinNanoseconds: -1, expected a whole number from 0 to 1000000000'],
    [set({ token: '0' }), 'token: expected 32 hexadecimal digits'],
    [tuning(row(null), row(null)), 'tuning[1]: allReduce has a row without upToBytes before, which must be its last'],
    [tuning(row(-1), row(null)), 'tuning[0].upToBytes: -1, expected a whole number from 0 to 9007199254740991'],
    [tuning(row(8), row(8), row(null)), 'tuning[1].upToBytes: 8 after 8, sizes must rise'],
    [tuning(row(8)), 'tuning[0].upToBytes: must be null, the last row of allReduce serves all larger sizes'],
    [
      tuning(row(8), row(null, 'reduce')),
      'tuning[0].upToBytes: must be null, the last row of allReduce serves all larger sizes',
    ],
    [
      tuning({ ...row(null), variants: [] }),
      'tuning[0].variants: the last one must need nothing, or a call could have none',
    ],
    [
      variant({ requires: ['registeredBuffers'] }),
      'tuning[0].variants: the last one must need nothing, or a call could have none',
    ],
    [
      variant({ asMessages: true }),
      'tuning[0].variants[0].asMessages: only allToAll, allGather and broadcast on GPUs by directOneShot with simple can be',
    ],
    [
      variant({ protocol: 'll128' }),
      'tuning[0].variants[0]: algorithm ring with protocol ll128 for allReduce, which the host device does not have',
    ],
    [
      variant({ algorithm: 'copyEngine' }),
      'tuning[0].variants[0]: algorithm copyEngine with protocol simple that does not require publishedAddresses for allReduce, which the host device does not have',
    ],
    [
      variant({ algorithm: 'copyEngine', requires: ['publishedAddresses'] }),
      'tuning[0].variants[0]: algorithm copyEngine with protocol simple for allReduce, which the host device does not have',
    ],
    [variant({ channels: 0 }), 'tuning[0].variants[0].channels: 0, expected a whole number from 1 to 3'],
    [variant({ channels: 4 }), 'tuning[0].variants[0].channels: 4, expected a whole number from 1 to 3'],
    [
      variant({ chunkBytes: 0 }),
      'tuning[0].variants[0].chunkBytes: 0, expected a whole number from 1 to 1099511627776',
    ],
    [
      variant({ chunkBytes: 2 ** 40 + 1 }),
      'tuning[0].variants[0].chunkBytes: 1099511627777, expected a whole number from 1 to 1099511627776',
    ],
    [variant({ threads: 63 }), 'tuning[0].variants[0].threads: 63, expected a whole number from 64 to 4096'],
    [variant({ threads: 4097 }), 'tuning[0].variants[0].threads: 4097, expected a whole number from 64 to 4096'],
    [variant({ predictedMicroseconds: -1 }), 'tuning[0].variants[0].predictedMicroseconds: -1 is no time'],
    [
      variant({ predictedMicrosecondsPerMebibyte: Number.NaN }),
      'tuning[0].variants[0].predictedMicrosecondsPerMebibyte: NaN is no time',
    ],
  ])('case %#: a plan that breaks a rule is refused', (change, message) => {
    expect(() => validatePlan(change(samplePlan()))).toThrow(new PlanError(message));
  });

  test('a written plan may come to a host twice and has no NICs yet', () => {
    const written = set({ network: null })(channel({ ring: [0, 1, 2, 3, 4], tree: [0, 0, 0, 1, 1] })(samplePlan()));
    expect(() => validatePlan(written, false)).not.toThrow();
  });

  test('a plan of one host needs neither a numeric address, ports, a network nor NICs', () => {
    const { peers, hosts, channels: all, ...rest } = samplePlan();
    const alone: CommPlan = {
      ...rest,
      hosts: hosts.slice(0, 1).map((one) => ({ ...one, address: '', nics: [] })),
      peers: peers.slice(0, 1).map((one) => ({ ...one, listenPort: 0, pairNic: null })),
      channels: all.map(() => ({ ring: [0], tree: [0], rail: 0 })),
      network: null,
    };
    expect(() => validatePlan(alone)).not.toThrow();
    const [only] = hosts;
    const nics = only?.nics ?? [];
    expect(() => validatePlan({ ...alone, hosts: alone.hosts.map((one) => ({ ...one, nics })) })).toThrow(
      new PlanError('hosts[0].nics: node0 has some, and the plan no network'),
    );
    expect(() => validatePlan({ ...alone, peers: alone.peers.map((one) => ({ ...one, pairNic: 0 })) })).toThrow(
      new PlanError('peers[0].pairNic: 0, and its host has no NIC'),
    );
    expect(() => validatePlan({ ...alone, channels: [{ ring: [0], tree: [0], rail: 1 }] })).toThrow(
      new PlanError('channels[0].rail: 1, expected a whole number from 0 to 0'),
    );
  });
});

const buffers =
  (changes: Partial<NonNullable<CommPlan['gpuBuffers']>>): Change =>
  (plan) => ({ ...plan, gpuBuffers: plan.gpuBuffers === null ? null : { ...plan.gpuBuffers, ...changes } });

describe('a plan for GPUs', () => {
  const messages = variant({ algorithm: 'directOneShot', asMessages: true });
  const count = gpuPlan(3).channels.length;

  test.each<[string, Change]>([
    ['the smallest slots', buffers({ narrowStepBytes: 128, llStepBytes: 128, ll128StepBytes: 128, lineSteps: 4 })],
    ['the largest slots', buffers({ narrowStepBytes: 2 ** 26, lineSteps: 16 })],
    ['no wide channels', buffers({ wideChannels: 0 })],
    ['only wide channels', buffers({ wideChannels: count })],
    [
      'messages',
      (plan) => ({
        ...messages(plan),
        tuning: messages(plan).tuning.map((one) => ({ ...one, collective: 'allGather' })),
      }),
    ],
  ])('a plan with %s is valid', (_, change) => {
    expect(() => validatePlan(change(gpuPlan(3)))).not.toThrow();
  });

  test.each<readonly [change: Change, message: string]>([
    [set({ gpuBuffers: null }), 'gpuBuffers: is missing; a plan for GPUs needs it'],
    [buffers({ wideChannels: -1 }), `gpuBuffers.wideChannels: -1, expected a whole number from 0 to ${count}`],
    [
      buffers({ wideChannels: count + 1 }),
      `gpuBuffers.wideChannels: ${count + 1}, expected a whole number from 0 to ${count}`,
    ],
    [buffers({ lineSteps: 3 }), 'gpuBuffers.lineSteps: 3, expected a whole number from 4 to 16'],
    [buffers({ lineSteps: 6 }), 'lineSteps: 6 is no power of two, which GPUs need'],
    [set({ ringBuffer: { steps: 6, stepBytes: 128 } }), 'ringBuffer.steps: 6 is no power of two, which GPUs need'],
    [set({ pairBuffer: { steps: 6, stepBytes: 128 } }), 'pairBuffer.steps: 6 is no power of two, which GPUs need'],
    [
      set({ ringBuffer: { steps: 4, stepBytes: 64 } }),
      'ringBuffer.stepBytes: 64, expected a whole number from 128 to 67108864',
    ],
    [buffers({ llStepBytes: 192 }), 'llStepBytes: 192 is no multiple of 128'],
    [
      buffers({ narrowStepBytes: 2 ** 26 + 128 }),
      'narrowStepBytes: 67108992, expected a whole number from 128 to 67108864',
    ],
    [
      set({ transports: { sameHost: 'socket', otherHost: 'socket' } }),
      'transports.sameHost: socket; between ranks of one host the cuda device has p2p and shm',
    ],
    [
      messages,
      'tuning[0].variants[0].asMessages: only allToAll, allGather and broadcast on GPUs by directOneShot with simple can be',
    ],
  ])('case %#: a plan that breaks a rule is refused', (change, message) => {
    expect(() => validatePlan(change(gpuPlan(3)))).toThrow(new PlanError(message));
  });
});

test('a written plan may leave out what has a default', () => {
  const buffer = { steps: 2, stepBytes: 64 };
  const { algorithm, protocol, channels: count, chunkBytes, threads } = plain;
  const short = { algorithm, protocol, channels: count, chunkBytes, threads };
  const written = {
    formatVersion: 1,
    peers: [{ host: 0 }],
    hosts: [{ name: 'a', address: '' }],
    channels: [{ ring: [0] }, { ring: [0] }],
    transports: { sameHost: 'shm', otherHost: 'socket' },
    ringBuffer: buffer,
    pairBuffer: buffer,
    tuning: [{ collective: 'allReduce', upToBytes: null, variants: [short] }],
    spinNanoseconds: 5,
  };
  expect(planFromJson(JSON.stringify(written), 'p.json')).toEqual({
    ...written,
    peers: [{ host: 0, listenPort: 0, pairNic: null }],
    hosts: [{ name: 'a', address: '', nics: [], gpuNics: [] }],
    channels: Array.from({ length: 2 }, () => ({ ring: [0], tree: null, rail: null })),
    device: 'host',
    network: null,
    gpuBuffers: null,
    tuning: [{ collective: 'allReduce', upToBytes: null, variants: [plain] }],
    copyChannels: 1,
    smsPerLaunch: 2,
    copyTimeouts: COPY_TIMEOUTS,
    token: '0'.repeat(32),
  });
});
