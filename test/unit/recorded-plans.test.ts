/**
 * Plans of jobs and predicted times, compared with recorded ones: a change of the planner shows what it changes. After a deliberate change
 * `npx vitest run --project unit recorded -u` records the new ones.
 */
import { expect, it } from 'vitest';
import { validatePlan } from '../../control/plan/validate.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { gpuBuffersFor } from '../../control/planner/device/gpu-buffers.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { measuringRows } from '../../control/planner/measured/candidates.ts';
import { Planner } from '../../control/planner/planner.ts';
import { speedsFor } from '../../control/planner/search/speeds.ts';
import { situationOnGpus } from '../../control/planner/device/gpus.ts';
import { NO_REDUCTION } from '../../control/planner/input/network-reduction.ts';
import { NO_PREFERENCES } from '../../control/planner/input/preferences.ts';
import { withTerms } from '../../control/planner/device/between-terms.ts';
import type { Situation } from '../../control/planner/tuning/situation.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { planText, situationText } from '../rig/plan-text.ts';
import { gpuInput, machineOf } from '../rig/plans.ts';
import { seededRandom } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';

type Variables = Readonly<Record<string, string>>;

function recorded(name: string, lines: readonly string[]): Promise<void> {
  return expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`fixtures/recorded/${name}.txt`);
}

function planned(title: string, input: PlanInput, environment: Variables = {}): string[] {
  const plan = new Planner(null, environment).plan(input, true);
  validatePlan(plan);
  return [`${title} ${JSON.stringify(environment)}`, ...planText(plan)];
}

/** Ranks on processors of hosts with so many cores, without a known machine. */
function hostInput(hostOf: readonly number[], cores: number): PlanInput {
  const { peers, token } = gpuInput(hostOf.length);
  return {
    hosts: [...new Set(hostOf)].map((host) => ({ name: `n${host}`, address: `10.0.0.${host}`, cores, machine: null })),
    peers: peers.map((peer, rank) => ({
      ...peer,
      host: hostOf[rank] ?? 0,
      listenPort: 4000,
      device: 'host',
      busId: '0',
      smCount: 0,
    })),
    token,
  };
}

const gpuCounts = [
  [1, 1],
  [2, 1],
  [3, 1],
  [4, 1],
  [8, 1],
  [2, 2],
  [6, 3],
  [7, 3],
  [16, 2],
  [24, 3],
  [9, 9],
  [40, 20],
] as const;

it('jobs on GPUs with NVSwitches have the recorded plans', async () => {
  await recorded(
    'gpu-plans',
    gpuCounts.flatMap(([ranks, hosts]) => planned(`${ranks} ranks on ${hosts} hosts`, gpuInput(ranks, hosts))),
  );
});

it.each<readonly [string, Variables]>([
  ['ring', { NCCL_ALGO: 'Ring' }],
  ['tree', { NCCL_ALGO: 'Tree', NCCL_PROTO: 'LL,Simple' }],
  ['ll', { NCCL_PROTO: 'LL' }],
  ['ll-ring', { NCCL_PROTO: 'LL', NCCL_ALGO: 'Ring' }],
  ['ll128', { NCCL_PROTO: 'LL128' }],
  ['few-channels', { NCCL_MAX_NCHANNELS: '4' }],
  ['many-channels', { NCCL_MIN_NCHANNELS: '40' }],
  ['few-sms', { NCCLRUN_MAX_SMS: '6' }],
  ['no-peers', { NCCL_P2P_DISABLE: '1' }],
])('jobs on GPUs with %s variables have the recorded plans', async (name, environment) => {
  const jobs = [
    [4, 1],
    [8, 2],
  ] as const;
  await recorded(
    `gpu-plans-${name}`,
    jobs.flatMap(([ranks, hosts]) => planned(`${ranks} ranks on ${hosts} hosts`, gpuInput(ranks, hosts), environment)),
  );
});

it('later communicators, small GPUs and GPUs without NVLinks have the recorded plans', async () => {
  const later = gpuInput(8);
  const small = gpuInput(4);
  const plain = gpuInput(4);
  const bridged = machineOf(
    bridgedGpus({
      sockets: 2,
      gpusPerSocket: 2,
      sm: 80,
      modelid: 85,
      count: 4,
      bridges: [
        [0, 1],
        [2, 3],
      ],
    }),
  );
  await recorded('gpu-plans-other', [
    ...planned('later', { ...later, peers: later.peers.map((peer) => ({ ...peer, communicators: 4 })) }),
    ...planned('not later', { ...later, peers: later.peers.map((peer) => ({ ...peer, communicators: 3 })) }),
    ...planned('20 SMs', { ...small, peers: small.peers.map((peer) => ({ ...peer, smCount: 20 })) }),
    ...planned('5 channels', { ...small, peers: small.peers.map((peer) => ({ ...peer, maxChannels: 5 })) }),
    ...planned('pairs', {
      ...plain,
      hosts: plain.hosts.map((host) => ({ ...host, machine: bridged })),
      peers: plain.peers.map((peer, rank) => ({ ...peer, busId: (0x10_000 + rank * 0x1000).toString(16) })),
    }),
    ...planned('unknown machine', { ...plain, hosts: plain.hosts.map((host) => ({ ...host, machine: null })) }),
  ]);
});

it('jobs on processors have the recorded plans', async () => {
  const jobs: readonly (readonly [readonly number[], number])[] = [
    [[0, 0], 4],
    [[0], 8],
    [[0, 0, 0], 1],
    [[0, 0, 0, 0, 0], 8],
    [Array.from({ length: 32 }, () => 0), 8],
    [[0, 0, 0, 0, 0, 0, 0, 0], 16],
    [Array.from({ length: 40 }, () => 0), 8],
    [[0, 1], 4],
    [[0, 1, 0, 1], 64],
    [[0, 1, 2, 0, 1, 2, 0], 2],
    [[0, 1, 2], 8],
    [Array.from({ length: 8 }, (_, rank) => rank), 8],
    [Array.from({ length: 9 }, (_, rank) => rank), 8],
    [Array.from({ length: 32 }, (_, rank) => rank % 3), 8],
    [Array.from({ length: 33 }, (_, rank) => rank % 3), 8],
    [Array.from({ length: 200 }, (_, rank) => rank % 2), 8],
  ];
  const variables: readonly Variables[] = [{}, { NCCL_ALGO: 'ring', NCCL_MAX_NCHANNELS: '2' }];
  await recorded(
    'host-plans',
    jobs.flatMap(([hostOf, cores]) =>
      variables.flatMap((environment) =>
        planned(`${hostOf.join('')} ${cores} cores`, hostInput(hostOf, cores), environment),
      ),
    ),
  );
});

it('the variants of all machines have the recorded predictions', async () => {
  const systems = {
    eight: eightGpus(),
    crossed: crossedGpus(true),
    ...Object.fromEntries([3, 7, 9, 11, 17, 20, 21, 30].map((seed) => [seed, randomTopology(seededRandom(seed))])),
  };
  await recorded(
    'predictions',
    Object.entries(systems).flatMap(([name, system]) =>
      [1, 2, 5].flatMap((hosts) => {
        const planned = planCluster([{ system, hosts, ranksPerHost: null }]);
        const situation = situationOnGpus(planned, NO_PREFERENCES, { network: null, corrections: {} });
        return [`${hosts} x ${name}`, ...situationText(situation)];
      }),
    ),
  );
});

const graph = {
  channels: 8,
  inside: 24_000,
  between: 12_000,
  typeInside: 'NVL',
  typeBetween: 'PXB',
  sameChannels: false,
  crossNic: 0,
  latencyBetween: 1.5,
} as const;
const far = { ...graph, channels: 3, typeInside: 'PHB', typeBetween: 'PXN', sameChannels: true } as const;

it('all numbers of hosts have the recorded predictions on both devices', async () => {
  const situations = (['cuda', 'host'] as const).flatMap((device) =>
    ([1, 2, 3, 9] as const).map((hosts): Situation => {
      const situation = {
        hosts,
        ranks: hosts * 4,
        ranksOfEachHost: 4,
        ring: graph,
        tree: far,
        collnet: graph,
        linkBandwidth: 100,
        blocks: 20,
        nicRate: hosts === 3 ? 3000 : null,
        linkRate: null,
      };
      const options = { network: null, corrections: {}, channels: 16, pairChannels: 4, load: 1 } as const;
      return withTerms(situation, device, options);
    }),
  );
  await recorded(
    'predictions-by-hosts',
    situations.flatMap((situation) => [
      `${situation.between?.device ?? 'inside'} ${situation.hosts} hosts`,
      ...situationText(situation),
    ]),
  );
});

it('GPUs have the recorded slots, and searches the recorded speeds', async () => {
  const slots = [2, 3, 4, 5, 8, 12, 16].flatMap((ranks) =>
    [4, 16, 32, 64].flatMap((channels) =>
      [true, false].map((isLater) => {
        const { ringBuffer, pairBuffer, gpuBuffers } = gpuBuffersFor({
          ranks,
          hosts: isLater ? 1 : 2,
          localRanks: isLater ? ranks : Math.ceil(ranks / 2),
          rails: !isLater && ranks % 4 === 0,
          channels,
          messageChannels: 8,
          isLater,
        });
        const sizes = [ringBuffer, pairBuffer].map(({ steps, stepBytes }) => `${steps}x${stepBytes}`);
        return `${ranks} ranks, ${channels} channels${isLater ? ', later' : ''}: ${sizes.join(' ')} ${JSON.stringify(gpuBuffers)}`;
      }),
    ),
  );
  const speeds = [70, 89, 90, 99, 100].flatMap((capability) =>
    [true, false].map((out) => `${capability} ${out ? 'out' : 'in'}: ${speedsFor(capability, out).join(' ')}`),
  );
  await recorded('slots-and-speeds', [...slots, ...speeds]);
});

it('plans for measuring have the recorded variants', async () => {
  const { situation } = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 4 }]);
  const budget = { ranks: 4, channels: 6, minChannels: 1, copyChannels: 3, pairChannels: 5 };
  const jobs = { cuda: gpuInput(4), host: hostInput([0, 0, 0, 0], 8) } as const;
  const text = (['cuda', 'host'] as const).flatMap((device) => {
    const { tuning } = new Planner(null).plan(jobs[device], true);
    return measuringRows(
      tuning,
      { ...budget, device, situation, reduction: NO_REDUCTION },
      (_, variant) => variant,
    ).map(
      ({ collective, upToBytes, variants }) =>
        `${device} ${collective} ${upToBytes ?? 'more'}: ${variants
          .map((one) => `${one.algorithm}.${one.protocol} ${one.channels}x${one.threads} ${one.requires.join()}`)
          .join(' / ')}`,
    );
  });
  await recorded('measuring', text);
});
