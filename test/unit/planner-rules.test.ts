/** What processors, links and variables mean to the planner, and which jobs it refuses. */
import { describe, expect, test } from 'vitest';
import type { AlgorithmName, TuningRow, Variant } from '../../control/plan/types.ts';
import { plannerVariables } from '../../control/planner/environment.ts';
import { checkDevices, checkGiven, checkGpuCount, UnplannableError } from '../../control/planner/input/check.ts';
import { MAX_GPUS } from '../../control/plan/layout.ts';
import type { PlanInput, PlannedPeer } from '../../control/planner/input/input.ts';
import { laneBandwidth, nvlinkBandwidth, socketBandwidth } from '../../control/planner/machine/constants.ts';
import { DEFAULT_ROUTES } from '../../control/planner/machine/routes.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpuInput, gpuPlan, samplePlan } from '../rig/plans.ts';

/** Every all_reduce by direct connections; other collectives as planned. */
const directOf = ({ collective }: TuningRow, { algorithm }: Variant): AlgorithmName =>
  collective === 'allReduce' ? 'directTwoShot' : algorithm;

/** A plan of so many hosts with a GPU each is given. */
const directPlan = (ranks: number) => () => {
  const made = gpuPlan(ranks, ranks);
  const tuning = made.tuning.map((row) => ({
    ...row,
    variants: row.variants.map((variant) => ({ ...variant, channels: 1, algorithm: directOf(row, variant) })),
  }));
  checkGiven({ source: 'p.json', plan: { ...made, tuning } }, gpuInput(ranks, ranks));
};

describe('what links carry', () => {
  test.each([
    [59, 20_000],
    [60, 18_000],
    [69, 18_000],
    [70, 20_000],
    [80, 20_000],
    [85, 20_000],
    [86, 12_000],
    [87, 20_000],
    [89, 20_000],
    [90, 20_600],
    [99, 20_600],
    [100, 40_100],
  ])('an NVLink of compute capability %i carries %i MB/s', (capability, bandwidth) => {
    expect(nvlinkBandwidth(capability)).toBe(bandwidth);
  });

  test.each([
    ['2.5 GT/s', 187.5],
    ['5 GT/s', 375],
    ['8.0 GT/s PCIe', 750],
    ['16.0 GT/s PCIe', 1500],
    ['32.0 GT/s', 3000],
    ['64.0 GT/s', 6000],
    ['', 750],
    ['7 GT/s', 750],
  ])('a lane at %j carries %d MB/s', (speed, bandwidth) => {
    expect(laneBandwidth(speed)).toBe(bandwidth);
  });

  test.each([
    ['ppc64', 'unknown', 0, 0, 32_000],
    ['arm64', 'unknown', 0, 0, 6000],
    ['unknown', 'intel', 6, 0xcf, 5_000_000],
    ['x86_64', 'unknown', 6, 0xcf, 5_000_000],
    ['x86_64', 'amd', 25, 1, 16_000],
    ['x86_64', 'zhaoxin', 7, 0x5b, 9000],
    ['x86_64', 'zhaoxin', 7, 0x5c, 6000],
    ['x86_64', 'zhaoxin', 6, 0x5b, 6000],
    ['x86_64', 'intel', 5, 0xcf, 6000],
    ['x86_64', 'intel', 6, 0x54, 6000],
    ['x86_64', 'intel', 6, 0x55, 10_000],
    ['x86_64', 'intel', 6, 0x8e, 10_000],
    ['x86_64', 'intel', 6, 0x8f, 22_000],
    ['x86_64', 'intel', 6, 0xac, 22_000],
    ['x86_64', 'intel', 6, 0xad, 40_000],
    ['x86_64', 'intel', 6, 0xaf, 40_000],
    ['x86_64', 'intel', 6, 0xb0, 22_000],
    ['x86_64', 'intel', 6, 0xce, 22_000],
    ['x86_64', 'intel', 6, 0xcf, 40_000],
  ] as const)('processors %s %s, family %i, model %i carry %i MB/s between sockets', (...facts) => {
    const [architecture, vendor, family, model, bandwidth] = facts;
    expect(socketBandwidth(architecture, vendor, family, model)).toBe(bandwidth);
  });
});

const routes = (environment: Readonly<Record<string, string>>) => plannerVariables(environment).routes;

describe('variables', () => {
  test.each([
    [{}, {}],
    [{ NCCL_P2P_DISABLE: '0', NCCL_NVB_DISABLE: '0', NCCL_PXN_DISABLE: '0' }, {}],
    [{ NCCL_P2P_DISABLE: '1', NCCL_P2P_LEVEL: 'SYS' }, { p2pLevel: 'LOC' }],
    [{ NCCL_P2P_LEVEL: 'nvl' }, { p2pLevel: 'NVL' }],
    [{ NCCL_P2P_LEVEL: '0' }, { p2pLevel: 'LOC' }],
    [{ NCCL_P2P_LEVEL: '1' }, { p2pLevel: 'PIX' }],
    [{ NCCL_P2P_LEVEL: '2' }, { p2pLevel: 'PXB' }],
    [{ NCCL_P2P_LEVEL: '3' }, { p2pLevel: 'PHB' }],
    [{ NCCL_P2P_LEVEL: '4' }, { p2pLevel: 'SYS' }],
    [{ NCCL_P2P_LEVEL: '9' }, { p2pLevel: 'SYS' }],
    [{ NCCL_NET_GDR_LEVEL: 'SYS' }, { gpuDirectLevel: 'SYS' }],
    [{ NCCL_NET_GDR_READ: '0' }, { gpuDirectRead: false }],
    [{ NCCL_NET_GDR_READ: '1' }, { gpuDirectRead: true }],
    [{ NCCL_NVB_DISABLE: '1' }, { throughGpus: false }],
    [{ NCCL_PXN_DISABLE: '1' }, { throughOtherNics: false }],
  ])('%j changes the paths by %j', (environment, changes) => {
    expect(routes(environment)).toEqual({ ...DEFAULT_ROUTES, ...changes });
  });

  test.each([
    [{}, 2],
    [{ NCCL_CROSS_NIC: '0' }, 0],
    [{ NCCL_CROSS_NIC: '1' }, 1],
    [{ NCCL_CROSS_NIC: '2' }, 2],
  ])('%j lets channels cross NICs: %i', (environment, crossNic) => {
    expect(plannerVariables(environment).shape).toEqual({ crossNic, graphs: null });
  });

  test('a level that means nothing is refused with those that there are', () => {
    expect(() => routes({ NCCL_P2P_LEVEL: '10' })).toThrow(
      new UnplannableError(
        'NCCL_P2P_LEVEL=10: one of LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS is wanted, or a number from 0 to 5',
      ),
    );
    expect(() => routes({ NCCL_P2P_LEVEL: 'DIS' })).toThrow('NCCL_P2P_LEVEL=DIS: ');
    expect(() => routes({ NCCL_NVB_DISABLE: '2' })).toThrow(UnplannableError);
  });

  test.each([
    ['ring;broadcast:tree', 'allReduce', 'ring'],
    ['ring;broadcast:tree', 'broadcast', 'tree'],
    ['^ring,directoneshot', 'allReduce', null],
    [' Ring ', 'reduce', 'ring'],
  ])('NCCL_ALGO=%s lets %s take %s', (wish, collective, algorithm) => {
    const plan = (): string | undefined =>
      new Planner(null, { NCCL_ALGO: wish })
        .plan(gpuInput(4), true)
        .tuning.find((row) => row.collective === collective && row.upToBytes === null)?.variants[0]?.algorithm;
    if (algorithm === null) expect(plan).toThrow(UnplannableError);
    else expect(plan()).toBe(algorithm);
  });
});

test('a planner remembers later communicators beside the first ones', () => {
  const planner = new Planner(null);
  const input = gpuInput(4);
  const buffersOf = (communicators: number) =>
    planner.plan({ ...input, peers: input.peers.map((peer) => ({ ...peer, communicators })) }, true).gpuBuffers;
  const [first, later] = [buffersOf(3), buffersOf(4)];
  expect(later).not.toEqual(first);
  expect([buffersOf(0), buffersOf(9)]).toEqual([first, later]);
});

describe('jobs that no plan can mend', () => {
  const input = gpuInput(4);
  const changed = (change: (peer: PlannedPeer, rank: number) => Partial<PlannedPeer>): PlanInput => ({
    ...input,
    peers: input.peers.map((peer, rank) => ({ ...peer, ...change(peer, rank) })),
  });

  test('ranks must use devices of one kind', () => {
    expect(() => checkDevices(changed((_, rank) => (rank === 2 ? { device: 'host' } : {})))).toThrow(
      new UnplannableError(
        'rank 0 (n0) uses the cuda device, rank 2 (n0) the host device: one communicator has one kind (NCCLRUN_DEVICE)',
      ),
    );
    expect(() => checkDevices(changed(() => ({ device: 'host', busId: '0' })))).not.toThrow();
  });

  test('ranks must not share a GPU, unless the user allows it or the GPU has parts', () => {
    const shared = changed((_, rank) => (rank === 3 ? { busId: input.peers[1]?.busId ?? '', cudaDevice: 1 } : {}));
    const message = `duplicate GPU: ranks 1 and 3 both use the GPU with bus id ${input.peers[1]?.busId} (device 1) of n0; with NCCL_MULTI_RANK_GPU_ENABLE=1 they share it`;
    expect(() => checkDevices(shared)).toThrow(new UnplannableError(message));
    expect(() => checkDevices(shared, true)).not.toThrow();
    const [host] = shared.hosts;
    const machine = host?.machine;
    if (host === undefined || machine === null || machine === undefined) throw new TypeError('no machine');
    const inParts = (parts: number): PlanInput => ({
      ...shared,
      hosts: [{ ...host, machine: { ...machine, gpusAt: () => parts } }],
    });
    expect(() => checkDevices(inParts(2))).not.toThrow();
    expect(() => checkDevices(inParts(1))).toThrow(message);
    expect(() => new Planner(null).plan(shared, true)).toThrow(message);
    expect(new Planner(null, { NCCL_MULTI_RANK_GPU_ENABLE: '1' }).plan(shared, true).peers).toHaveLength(4);
  });

  test('equal addresses on different hosts are different GPUs', () => {
    expect(() => checkDevices(gpuInput(4, 2))).not.toThrow();
  });

  test('a host has at most 16 GPUs in a communicator', () => {
    expect(() => checkGpuCount(gpuInput(16))).not.toThrow();
    expect(() => checkGpuCount(gpuInput(17))).toThrow(
      new UnplannableError(
        'the communicator has 17 GPUs on n0: this version connects at most 16 of one host; use NCCLRUN_DEVICE=host with buffers in ordinary memory',
      ),
    );
  });

  const plan = gpuPlan(4);
  const count = plan.channels.length;

  test('a given plan must be for the device of the ranks', () => {
    expect(() => checkGiven({ source: 'p.json', plan: samplePlan() }, gpuInput(5))).toThrow(
      'the plan in p.json is for the host device, rank 0 (n0) uses the cuda device: give a plan for the cuda device, set NCCLRUN_DEVICE=host, or leave --plan out',
    );
    expect(() => checkGiven({ source: 'p.json', plan }, input)).not.toThrow();
  });

  const small = (smCount: number, busId?: string) => () =>
    checkGiven(
      { source: 'p.json', plan },
      changed((peer, rank) => ({ smCount: rank === 1 ? smCount : 1000, busId: busId ?? peer.busId })),
    );

  test('a given plan must not have more channels than a GPU has SMs', () => {
    expect(small(count)).not.toThrow();
    expect(small(count - 1)).toThrow(
      `the plan in p.json has ${count} channels, one SM each, and the GPU of rank 1 (n0) has ${count - 1}: give a plan of at most ${count - 1} channels, or leave --plan out`,
    );
    expect(small(4 * count, 'aa')).not.toThrow();
    expect(small(4 * count - 1, 'aa')).toThrow(
      `(n0) has ${4 * count - 1}, which 4 ranks share: give a plan of at most ${count - 1} channels`,
    );
  });

  test('a given plan must have variants that GPUs of several hosts have', () => {
    expect(() => checkGiven({ source: 'p.json', plan: gpuPlan(4, 2) }, gpuInput(4, 2))).not.toThrow();
    expect(() => checkGiven({ source: 'p.json', plan }, gpuInput(4, 2))).toThrow(
      /^the plan in p\.json has algorithm \w+ with protocol \w+ on \d+ channels for \w+, which 4 GPUs of several hosts do not have: leave --plan out$/u,
    );
  });

  test('a given plan has direct variants between hosts for up to as many GPUs as one host connects', () => {
    expect(directPlan(MAX_GPUS)).not.toThrow();
    expect(directPlan(MAX_GPUS + 1)).toThrow(`allReduce, which ${MAX_GPUS + 1} GPUs of several hosts do not have`);
  });
});
