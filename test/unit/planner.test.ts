import { describe, expect, test } from 'vitest';
import { validatePlan } from '../../control/plan/validate.ts';
import { UnplannableError } from '../../control/planner/input/check.ts';
import type { GivenPlan, PlanInput } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpuInput, gpuPlan, planCommunicator, samplePlan } from '../rig/plans.ts';
import { seededRandom } from '../rig/random.ts';
import type { Random } from '../rig/random.ts';

function input(hostOf: readonly number[], cores = 64): PlanInput {
  const hosts = Math.max(...hostOf) + 1;
  return {
    hosts: Array.from({ length: hosts }, (_, index) => ({
      name: `n${index}`,
      address: `10.0.0.${index}`,
      cores,
      machine: null,
    })),
    peers: hostOf.map((host) => ({
      host,
      listenPort: 4000,
      device: 'host',
      cudaDevice: 0,
      busId: '0',
      smCount: 0,
      maxChannels: 0,
      communicators: 0,
      pidHash: '1',
    })),
    token: '0123456789abcdef0123456789abcdef',
  };
}

function randomInput(random: Random): PlanInput {
  const hosts = 1 + random(6);
  const extra = random(30);
  return input(
    Array.from({ length: hosts + extra }, (_, rank) => (rank < hosts ? rank : random(hosts))),
    1 + random(8),
  );
}

/** "collective algorithm" of the rows, each once, planned with that NCCL_ALGO. */
function algorithms(hostOf: readonly number[], wish: string): string[] {
  const { tuning } = new Planner(null, { NCCL_ALGO: wish }).plan(input(hostOf), true);
  validatePlan({ ...planCommunicator(input(hostOf)), tuning });
  return [...new Set(tuning.map(({ collective, variants }) => `${collective} ${variants[0]?.algorithm}`))];
}

/** "bytes algorithm protocol" of the rows for all_reduce and for send and receive, planned in that environment. */
function protocols(hostOf: readonly number[], environment: Readonly<Record<string, string>>): string[] {
  const { tuning } = new Planner(null, environment).plan(input(hostOf), true);
  validatePlan({ ...planCommunicator(input(hostOf)), tuning });
  return tuning
    .filter(({ collective }) => collective === 'allReduce' || collective === 'sendRecv')
    .map(({ upToBytes, variants }) => `${upToBytes} ${variants[0]?.algorithm} ${variants[0]?.protocol}`);
}

/** "bytes algorithm" of the rows for broadcast. */
function broadcasts(hostOf: number[]): string[] {
  return planCommunicator(input(hostOf))
    .tuning.filter(({ collective }) => collective === 'broadcast')
    .map(({ upToBytes, variants }) => `${upToBytes} ${variants[0]?.algorithm}`);
}

/** Of ranks on hosts of two cores. */
function spinOf(hostOf: number[]): number {
  return planCommunicator(input(hostOf, 2)).spinNanoseconds;
}

function take(given: GivenPlan, facts: PlanInput): () => unknown {
  return () => new Planner(given).plan(facts, true);
}

describe('the planner', () => {
  test('the planner makes a valid plan, and the same one for the same input', () => {
    const random = seededRandom(1);
    for (let round = 0; round < 500; round++) {
      const facts = randomInput(random);
      const plan = planCommunicator(facts);
      validatePlan(plan);
      expect(planCommunicator(facts)).toEqual(plan);
      expect(new Planner(null).plan(facts, true)).toEqual(plan);
    }
  });

  test('the ring visits every host once', () => {
    const random = seededRandom(2);
    for (let round = 0; round < 200; round++) {
      const facts = randomInput(random);
      const [channel] = planCommunicator(facts).channels;
      const hosts = (channel?.ring ?? []).map((rank) => facts.peers[rank]?.host);
      const visits = hosts.filter((host, index) => host !== hosts[index - 1]);
      expect(visits).toHaveLength(facts.hosts.length);
    }
  });

  test('ranks poll for a shorter time when more of them share a core', () => {
    expect(spinOf([0, 0, 1, 1])).toBeGreaterThan(spinOf([0, 0]));
    expect(spinOf([0, 0, 0, 1])).toBe(666_667);
    expect(spinOf(Array.from({ length: 128 }, () => 0))).toBe(15_625);
  });

  test('the planner caches plans by shape and drops old ones', () => {
    const planner = new Planner(null);
    const first = planner.plan(input([0, 0, 1]), false);
    const other = { ...input([0, 0, 1]), token: 'f'.repeat(32) };
    const second = planner.plan(other, false);
    expect(second.channels[0]?.ring).toBe(first.channels[0]?.ring);
    expect(second.token).toBe('f'.repeat(32));
    for (let ranks = 1; ranks < 100; ranks++) planner.plan(input(Array.from({ length: ranks }, () => 0)), false);
    const again = planner.plan(input([0, 0, 1]), false);
    expect(again.channels).not.toBe(first.channels);
    expect(again.channels).toEqual(first.channels);
  });

  test('the plan uses the algorithm of NCCL_ALGO where the collective has it', () => {
    expect(algorithms([0, 0, 1], 'Tree')).toEqual([
      'allReduce tree',
      'allGather directOneShot',
      'reduceScatter directOneShot',
      'broadcast tree',
      'reduce tree',
      ...['allToAll', 'gather', 'scatter', 'sendRecv', 'barrier'].map((name) => `${name} directOneShot`),
    ]);
    expect(algorithms([0, 0, 0], 'ring').filter((row) => !row.endsWith('directOneShot'))).toEqual(
      ['allReduce', 'allGather', 'reduceScatter', 'broadcast', 'reduce'].map((name) => `${name} ring`),
    );
    expect(algorithms([0, 0, 1], '^ring,tree').slice(0, 2)).toEqual([
      'allReduce directOneShot',
      'allReduce directTwoShot',
    ]);
    expect(algorithms([0, 0, 1, 1], 'rail')).toContain('allGather rail');
    expect(algorithms([0, 0, 1], 'rail')).not.toContain('allGather rail');
    expect(() => algorithms([0], 'star')).toThrow(
      /^NCCL_ALGO=star: 'star' is unknown; there are direct, ring, tree, rail, copyengine, collnet/,
    );
    expect(() => algorithms([0], 'constructor')).toThrow(/'constructor' is unknown/);
  });

  test('the plan obeys NCCL_ALGO per collective and ignores algorithms that only NCCL has', () => {
    const usual = algorithms([0, 0, 1], '');
    expect(algorithms([0, 0, 1], '^NVLS,NVLSTree')).toEqual(usual);
    expect(algorithms([0, 0, 1], 'PAT')).toEqual(usual);
    const some = algorithms([0, 0, 1], 'Ring; AllReduce:Tree ;broadcast:^ring,tree');
    expect(some).toEqual(expect.arrayContaining(['allReduce tree', 'reduce ring', 'broadcast directOneShot']));
    expect(some.filter((row) => /^(?:allReduce|reduce|broadcast) /u.test(row))).toHaveLength(3);
    const one = algorithms([0, 0, 1], 'allreduce:ring').filter((row) => !row.startsWith('allReduce '));
    expect(one).toEqual(usual.filter((row) => !row.startsWith('allReduce ')));
    expect(() => algorithms([0], 'allreduce:star')).toThrow(/^NCCL_ALGO=allreduce:star: 'star' is unknown/);
    expect(() => algorithms([0], 'allred:ring')).toThrow(/'allred' is no collective; there are allreduce, allgather/);
    expect(() => algorithms([0], 'ring;')).toThrow(/'' is unknown/);
  });

  test('small sizes inside a host use LL, and NCCL_PROTO selects the protocol', () => {
    expect(protocols([0, 0], {})).toEqual([
      '128 directOneShot ll',
      '65536 directOneShot simple',
      'null directTwoShot simple',
      'null directOneShot simple',
    ]);
    expect(protocols([0, 0, 1], {})).toEqual([
      '25341 directOneShot simple',
      'null tree simple',
      'null directOneShot simple',
    ]);
    expect(protocols([0, 0, 1, 2], {})).toEqual([
      '28224 directOneShot simple',
      'null directTwoShot simple',
      'null directOneShot simple',
    ]);
    expect(protocols([0, 1], {})).toEqual(['null directOneShot simple', 'null directOneShot simple']);
    // Sends and receives have no other.
    expect(protocols([0, 0, 1], { NCCL_PROTO: 'LL' })).toEqual([
      '25341 directOneShot ll',
      'null tree ll',
      'null directOneShot simple',
    ]);
    expect(protocols([0, 0], { NCCL_PROTO: '^ll', NCCL_ALGO: 'ring' })).toEqual([
      'null ring simple',
      'null directOneShot simple',
    ]);
    expect(protocols([0, 0], { NCCL_PROTO: 'll', NCCL_ALGO: 'tree' })).toEqual([
      'null tree ll',
      'null directOneShot simple',
    ]);
  });

  test('a large broadcast of four local ranks uses a ring', () => {
    expect(broadcasts([0, 0])).toEqual(['128 directOneShot', 'null directOneShot']);
    expect(broadcasts([0, 0, 0, 0])).toEqual(['128 directOneShot', '16384 directOneShot', 'null ring']);
  });

  test('a GPU communicator has no more channels than its most restrictive rank allows', () => {
    const facts = input([0, 0]);
    const channelsOf = (wishes: readonly number[]): number => {
      const peers = facts.peers.map((peer, rank) => ({
        ...peer,
        device: 'cuda' as const,
        busId: `${rank + 1}0`,
        smCount: 132,
        maxChannels: wishes[rank] ?? 0,
        communicators: 0,
      }));
      return planCommunicator({ ...facts, peers }).channels.length;
    };
    expect(
      [
        [0, 0],
        [16, 0],
        [16, 3],
        [1000, 0],
      ].map(channelsOf),
    ).toEqual([64, 16, 3, 64]);
  });

  test('the planner rejects two ranks on one GPU and names both', () => {
    const facts = input([0, 0, 1]);
    const peers = facts.peers.map((peer) => ({
      ...peer,
      device: 'cuda' as const,
      busId: '1b000',
      smCount: 132,
      maxChannels: 0,
      communicators: 0,
    }));
    expect(() => planCommunicator({ ...facts, peers })).toThrow(UnplannableError);
    expect(() => planCommunicator({ ...facts, peers })).toThrow(
      /duplicate GPU: ranks 0 and 1 both use .* 1b000 .* of n0/,
    );
  });

  test('the planner uses a given plan only for communicators of its size', () => {
    const planner = new Planner({ source: 'p.json', plan: samplePlan() });
    const same = planner.plan(input([0, 1, 0, 1, 0]), true);
    expect(same.channels).toEqual(samplePlan().channels.map((channel) => ({ ...channel, rail: 0 })));
    const bare = {
      ...samplePlan(),
      channels: [{ ring: [1, 3, 0, 2, 4], tree: null, rail: 7 }],
      copyChannels: 1,
      smsPerLaunch: 1,
      tuning: [],
    };
    const elsewhere = new Planner({ source: 'p.json', plan: bare }).plan(input([0, 0, 1, 1, 2]), true);
    expect(elsewhere.channels).toEqual([{ ring: [1, 0, 3, 2, 4], tree: [0, 0, 4, 2, 0], rail: 0 }]);
    validatePlan(elsewhere);
    expect(planner.plan(input([0, 1]), false).channels).toEqual([{ ring: [0, 1], tree: [0, 0], rail: 0 }]);
    expect(() => planner.plan(input([0, 1]), true)).toThrow(/is for 5 ranks, this communicator has 2/);
  });

  test('the planner rejects a given plan that the ranks cannot execute', () => {
    const host = { source: 'host.json', plan: planCommunicator(input([0, 0])) };
    const cuda = { source: 'cuda.json', plan: gpuPlan(2) };
    expect(take(host, input([0, 0]))).not.toThrow();
    expect(take(cuda, gpuInput(2))).not.toThrow();
    expect(take(host, gpuInput(2))).toThrow(
      /^the plan in host.json is for the host device, rank 0 \(n0\) uses the cuda device: give a plan .* NCCLRUN_DEVICE=host/,
    );
    expect(take(cuda, input([0, 0]))).toThrow(
      /in cuda.json is for the cuda device, rank 0 \(n0\) uses the host device/,
    );
    expect(take(cuda, gpuInput(2, 2))).toThrow(
      /in cuda.json has algorithm directOneShot with protocol ll on 1 channels for allReduce, which 2 GPUs of several hosts do not have/,
    );
    const facts = gpuInput(2);
    const small = { ...facts, peers: facts.peers.map((peer) => ({ ...peer, smCount: 63 })) };
    expect(take(cuda, small)).toThrow(
      /in cuda.json has 64 channels, .* rank 0 \(n0\) has 63: give a plan of at most 63/,
    );
    // A program may have communicators of both kinds: the plan is for those of its device.
    expect(new Planner(cuda).plan(input([0, 0]), false).device).toBe('host');
  });
});
