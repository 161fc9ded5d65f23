/** A plan written by hand is carried out as written: the bytes on every connection prove it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { COPY_TIMEOUTS } from '../../control/plan/types.ts';
import type { Variant, WrittenPlan } from '../../control/plan/types.ts';
import { planToJson } from '../../control/plan/json.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { parseEdges } from '../rig/edges.ts';
import { gpuPlan } from '../rig/plans.ts';
import type { Moved } from '../rig/edges.ts';

const RANKS = 4;
const rings = [
  [0, 2, 1, 3],
  [3, 1, 0, 2],
  [1, 3, 2, 0],
];
const variant: Variant = {
  algorithm: 'ring',
  protocol: 'simple',
  channels: 3,
  chunkBytes: 5003,
  threads: 64,
  requires: [],
  asMessages: false,
  predictedMicroseconds: 0,
  predictedMicrosecondsPerMebibyte: 0,
};
const plan: WrittenPlan = {
  formatVersion: 1,
  device: 'host',
  peers: Array.from({ length: RANKS }, () => ({ host: 0, listenPort: 0, pairNic: null })),
  hosts: [{ name: hostname(), address: '127.0.0.1', nics: [], gpuNics: [] }],
  channels: rings.map((ring) => ({ ring, tree: null, rail: null })),
  copyChannels: 1,
  smsPerLaunch: 3,
  copyTimeouts: COPY_TIMEOUTS,
  transports: { sameHost: 'shm', otherHost: 'socket' },
  network: null,
  ringBuffer: { steps: 3, stepBytes: 4160 },
  pairBuffer: { steps: 2, stepBytes: 1024 },
  gpuBuffers: null,
  tuning: [
    { collective: 'allReduce', upToBytes: 1024, variants: [{ ...variant, algorithm: 'directOneShot', channels: 1 }] },
    { collective: 'allReduce', upToBytes: 65_536, variants: [{ ...variant, algorithm: 'directTwoShot', channels: 1 }] },
    { collective: 'allReduce', upToBytes: 1 << 20, variants: [{ ...variant, channels: 2 }] },
    { collective: 'allReduce', upToBytes: null, variants: [variant] },
    { collective: 'barrier', upToBytes: null, variants: [{ ...variant, channels: 1 }] },
    { collective: 'sendRecv', upToBytes: null, variants: [{ ...variant, channels: 1 }] },
  ],
  spinNanoseconds: 0,
  token: 'f'.repeat(32),
};

let directory = '';
let file = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-plan-'));
  file = join(directory, 'plan.json');
  await writeFile(file, planToJson(plan));
  program = await compileWithEngine('test/rig/programs/edges.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

async function carriedOut(...sizes: number[]): Promise<Map<number, Moved[]>> {
  const options = ['-n', String(RANKS), '--plan', file, '--tag-output=none'];
  const { status, stdout, stderr } = await Command.run([...options, program, ...sizes.map(String)]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return parseEdges(stdout);
}

const busy = (moved: readonly Moved[]): Moved[] => moved.filter((edge) => edge.bytes > 0);
const summary = (moved: readonly Moved[]): string[] =>
  moved.map((edge) => `${edge.channel === -1 ? 'pair' : edge.channel} ${edge.peer}: ${edge.bytes}`).toSorted();
const sum = (moved: readonly Moved[]): number => moved.reduce((total, edge) => total + edge.bytes, 0);

it("the engine uses the plan's algorithm for each size", async () => {
  const [oneShot, twoShot, ring] = [800, 48_000, 4_800_000];
  const bySize = await carriedOut(oneShot, twoShot, ring);
  for (let rank = 0; rank < RANKS; rank++) {
    const sent = (size: number): Moved[] =>
      busy(bySize.get(size) ?? []).filter((edge) => edge.rank === rank && edge.sends);
    const peers = [0, 1, 2, 3].filter((peer) => peer !== rank);
    // Everything to everybody.
    expect(summary(sent(oneShot))).toEqual(peers.map((peer) => `pair ${peer}: ${oneShot}`));
    // About a quarter to everybody, twice.
    expect(sent(twoShot).map((edge) => [edge.channel, edge.peer])).toEqual(peers.map((peer) => [-1, peer]));
    for (const edge of sent(twoShot)) expect(Math.abs(edge.bytes / (twoShot / 2) - 1)).toBeLessThan(0.05);
    expect(sent(ring).every((edge) => edge.channel >= 0)).toBe(true);
  }
  // Each piece goes n-1 times to be reduced and n-1 times to be known.
  for (const size of [twoShot, ring]) {
    expect(sum((bySize.get(size) ?? []).filter((edge) => edge.sends))).toBe(2 * (RANKS - 1) * size);
  }
});

it("the engine uses the plan's rings in their order and its number of channels", async () => {
  const [two, three] = [900_000, 3_000_000];
  const bySize = await carriedOut(two, three);
  for (const [size, channels] of [
    [two, 2],
    [three, 3],
  ] as const) {
    const edges = busy(bySize.get(size) ?? []);
    const expected = rings.slice(0, channels).flatMap((ring, channel) =>
      ring.flatMap((rank, position) => {
        const next = ring[(position + 1) % RANKS] ?? 0;
        return [`${channel}: ${rank} sends ${next}`, `${channel}: ${next} receives ${rank}`];
      }),
    );
    const seen = edges.map((edge) => `${edge.channel}: ${edge.rank} ${edge.sends ? 'sends' : 'receives'} ${edge.peer}`);
    expect(seen.toSorted()).toEqual(expected.toSorted());
    for (const edge of edges.filter((candidate) => candidate.sends)) {
      const received = edges.find(
        (other) =>
          !other.sends && other.rank === edge.peer && other.peer === edge.rank && other.channel === edge.channel,
      );
      expect(received?.bytes).toBe(edge.bytes);
    }
  }
});

it('the launcher rejects an invalid plan and names the file', async () => {
  const broken = join(directory, 'broken.json');
  await writeFile(broken, planToJson({ ...plan, channels: [{ ring: [0, 0, 1, 2], tree: null, rail: null }] }));
  const { status, stderr } = await Command.run(['-n', String(RANKS), '--plan', broken, program, '100']);
  expect(status).not.toBe(0);
  expect(stderr).toContain(broken);
  expect(stderr).toMatch(/ring/);
});

it('the launcher rejects a plan with features that its device lacks before anything starts', async () => {
  const [first, ...rows] = plan.tuning;
  const cases: readonly (readonly [Partial<WrittenPlan>, string])[] = [
    [
      { transports: { sameHost: 'shm', otherHost: 'p2p' } },
      'transports.otherHost: p2p; between ranks of different hosts the host device has socket and ib',
    ],
    [
      {
        tuning: [
          { collective: 'allReduce', upToBytes: 1024, variants: [{ ...variant, algorithm: 'collnet' }] },
          ...rows,
        ],
      },
      'tuning[0].variants[0]: algorithm collnet with protocol simple that does not require networkReduction for allReduce, which the host device does not have',
    ],
  ];
  expect(first?.upToBytes).toBe(1024);
  for (const [part, problem] of cases) {
    const wrong = join(directory, 'wrong.json');
    await writeFile(wrong, planToJson({ ...plan, ...part }));
    const { status, stdout, stderr } = await Command.run(['-n', String(RANKS), '--plan', wrong, program, '100']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(`${wrong}: ${problem}`);
  }
});

it('every rank rejects a plan for the other device', async () => {
  const gpus = join(directory, 'gpus.json');
  await writeFile(gpus, planToJson(gpuPlan(RANKS)));
  const { status, stdout, stderr } = await Command.run(['-n', String(RANKS), '--plan', gpus, program, '100']);
  expect(status).not.toBe(0);
  expect(stdout).toBe('');
  expect(stderr).toContain(`the plan in ${gpus} is for the cuda device, rank 0 (`);
});

it('the launcher rejects a plan for another number of ranks before anything starts', async () => {
  const cores = availableParallelism(); // without -n a rank for each, which is known once the host has answered
  const cases: readonly (readonly [number, readonly string[]])[] = [
    [2, ['-n', '2']],
    [cores, ['-H', 'localhost']],
  ];
  for (const [count, options] of cases.filter(([ranks]) => ranks !== RANKS)) {
    const result = await Command.result([...options, '--plan', file, program]);
    const { exitCode, reason, failures, outcome } = result;
    const started = result.ranks.filter(({ pid }) => pid !== null);
    expect({ exitCode, reason, started }).toEqual({
      exitCode: 2,
      reason: 'usage',
      started: [],
    });
    expect(failures).toHaveLength(1);
    expect(outcome.stderr).toMatch(new RegExp(`^ncclrun: ${file}: is for 4 ranks, this job has ${count}\n`));
  }
});
