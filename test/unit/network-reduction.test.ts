/** All-reduces by a network that reduces: what the model predicts, and of which sizes plans take them. */
import { describe, expect, it } from 'vitest';
import { validatePlan } from '../../control/plan/validate.ts';
import { networkReductionOf, NO_REDUCTION, reductionKey } from '../../control/planner/input/network-reduction.ts';
import type {
  AggregatorPlace,
  AggregatorPlaces,
  NetworkReduction,
} from '../../control/planner/input/network-reduction.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { Planner } from '../../control/planner/planner.ts';
import { termsOf, UNKNOWN_RATES } from '../../control/planner/device/between-terms.ts';
import { limitsOfAggregators } from '../../control/planner/tuning/aggregators.ts';
import { predictBetween } from '../../control/planner/tuning/between.ts';
import { AGGREGATOR_COSTS } from '../../control/planner/tuning/between-costs.ts';
import { member, other, reducedInput as input, SLOW_MBPS } from '../rig/reduced-hosts.ts';

const onEach = (hosts: number): AggregatorPlaces => [
  member(0),
  ...Array.from({ length: hosts - 1 }, (_, i) => member(i + 1)),
];

/** "up to bytes algorithm | and without the network" of all-reduces. */
function rows(planned: PlanInput, environment: Environment = {}): string[] {
  const plan = new Planner(null, environment).plan(planned, true);
  validatePlan(plan);
  return plan.tuning
    .filter(({ collective }) => collective === 'allReduce')
    .map(({ upToBytes, variants }) => `${upToBytes} ${variants.map(({ algorithm }) => algorithm).join(' | ')}`);
}

const PLUGIN = { NCCL_COLLNET_ENABLE: '1' };

describe('who reduces', () => {
  it.each<[string, readonly AggregatorPlace[], Environment, NetworkReduction]>([
    ['nobody reduces without a word of the user', [], {}, NO_REDUCTION],
    ["a plugin's network reduces where the variable asks for it", [], PLUGIN, { by: 'plugin' }],
    ['the aggregators of the job reduce', [other(0)], {}, { by: 'aggregators', aggregators: [other(0)] }],
    ['the aggregators come before a plugin', [member(1)], PLUGIN, { by: 'aggregators', aggregators: [member(1)] }],
    ['nobody reduces for too few hosts', [other(0)], { ...PLUGIN, NCCL_COLLNET_NODE_THRESHOLD: '5' }, NO_REDUCTION],
    ['a plugin reduces for enough hosts', [], { ...PLUGIN, NCCL_COLLNET_NODE_THRESHOLD: '4' }, { by: 'plugin' }],
    ['nobody reduces where the variable forbids it', [other(0)], { NCCL_COLLNET_ENABLE: '0' }, NO_REDUCTION],
  ])('the planner finds that %s', (_, aggregators, environment, expected) => {
    expect(networkReductionOf(aggregators, 4, environment)).toEqual(expected);
  });

  it('another value of the variable is refused', () => {
    expect(() => networkReductionOf([], 4, { NCCL_COLLNET_ENABLE: '2' })).toThrow(
      'NCCL_COLLNET_ENABLE=2: a whole number from 0 to 1 is wanted',
    );
  });

  it('tables of measured times tell places and links apart, and not the names of hosts', () => {
    expect(reductionKey(NO_REDUCTION)).toBeUndefined();
    expect(reductionKey({ by: 'plugin' })).toBe('plugin');
    expect(reductionKey({ by: 'aggregators', aggregators: [member(2), other(10_000)] })).toBe(
      'aggregators host 2, other 10000',
    );
  });
});

/** Of an aggregator for 4 hosts with a rank each. */
const threadSlowness = (aggregator: AggregatorPlace, load: number): number =>
  limitsOfAggregators([aggregator], { ranks: 4, hosts: 4 }, { linkRate: null, load }).find(
    ({ limit }) => limit.by === 'aggregatorThread',
  )?.slowness ?? 0;

/** So many aggregators, each on a further host. */
const places = (count: number): AggregatorPlaces => [
  other(0),
  ...Array.from(
    { length: count - 1 },
    (_, index): AggregatorPlace => ({ place: 'other', name: `s${index}`, speedMbps: 0 }),
  ),
];

describe('what aggregators load', () => {
  const terms = { linkRate: 37.5, load: 1 };
  /** Bytes that the busiest link of an aggregator's host carries for each byte of the operation. */
  const carried = (aggregators: AggregatorPlaces, ranks: number, hosts: number, rate = 37.5): number => {
    const links = limitsOfAggregators(aggregators, { ranks, hosts }, terms).filter(
      ({ limit }) => limit.by === 'aggregatorLink',
    );
    return Math.max(...links.map(({ slowness }) => slowness)) * rate;
  };

  it('the link of a lone aggregator on a further host carries what every host sends', () => {
    expect(carried([other(0)], 4, 4)).toBeCloseTo(4);
    expect(carried([other(0)], 16, 4)).toBeCloseTo(4);
    expect(carried([other(8000)], 4, 4, 1000)).toBeCloseTo(4);
  });

  it('a lone aggregator on a host with ranks spares that host its own contribution', () => {
    expect(carried([member(0)], 4, 4)).toBeCloseTo(3);
  });

  it('every link carries as much as by a ring with an aggregator on each host', () => {
    for (const hosts of [2, 3, 4, 8]) {
      for (const local of [1, 2, 4, 8, 32])
        expect(carried(onEach(hosts), hosts * local, hosts)).toBeCloseTo((2 * (hosts - 1)) / hosts);
    }
  });

  it('several aggregators on one host share its link, and no more than everything goes there', () => {
    expect(carried([other(0), other(0)], 4, 4)).toBeCloseTo(4);
    expect(carried([other(0), other(0)], 16, 4)).toBeCloseTo(4);
  });

  it('several aggregators make a tree for more than 32 hosts, whose leaves have a parent beside their hosts', () => {
    // 2 leaves of 32 members, and a root.
    expect(carried([other(0)], 64, 64)).toBeCloseTo(64);
    expect(carried(places(2), 32, 32)).toBeCloseTo(16);
    expect(carried(places(3), 64, 64)).toBeCloseTo(33);
    expect(carried(places(2), 64, 64)).toBeCloseTo(2 * 33); // one of the two is two of the three
    expect(carried(places(12), 128, 64)).toBeCloseTo(33 / 4); // 4 trees in turn
    expect(carried([other(0), other(0), other(0)], 64, 64)).toBeCloseTo(3 * 33); // all of it on one host
  });

  it('the thread of an aggregator moves the contributions of all hosts, in turn with the ranks of its host', () => {
    const alone = 4 / AGGREGATOR_COSTS.bytesPerMicrosecond;
    expect(threadSlowness(other(0), 3) / alone).toBeCloseTo(1);
    expect(threadSlowness(member(0), 3) / alone).toBeCloseTo(3);
  });

  it('members reach an aggregator by one of their NICs, a plugin by all', () => {
    const network = {
      name: 'Socket',
      sockets: 1,
      socketThreads: 0,
      rails: 2,
      speedMbps: SLOW_MBPS,
      socketMbps: SLOW_MBPS,
      isOneMachine: false,
    };
    const bytes = (reduction: NetworkReduction): number | undefined => {
      const options = { corrections: {}, channels: 2, pairChannels: 1, load: 1 } as const;
      const between = termsOf('host', UNKNOWN_RATES, { ...options, network: { ...network, reduction } });
      return predictBetween('allReduce', 'collnet', { ranks: 4, hosts: 4 }, between)?.bytesPerMicrosecond;
    };
    expect(bytes({ by: 'aggregators', aggregators: [other(40_000)] })).toBeCloseTo(37.5);
    expect(bytes({ by: 'plugin' })).toBeCloseTo(75);
    expect(bytes(NO_REDUCTION)).toBeUndefined();
  });
});

/** Microseconds of a byte by the network, as a part of those by a ring. */
const ratio = (hosts: number, reduction: NetworkReduction): number => {
  const options = { corrections: {}, channels: 1, pairChannels: 1, load: 1 } as const;
  const network = {
    name: 'Socket',
    sockets: 1,
    socketThreads: 0,
    rails: 1,
    speedMbps: SLOW_MBPS,
    socketMbps: SLOW_MBPS,
    isOneMachine: false,
  };
  const between = termsOf('host', UNKNOWN_RATES, { ...options, network: { ...network, reduction } });
  const rate = (algorithm: 'collnet' | 'ring'): number =>
    predictBetween('allReduce', algorithm, { ranks: hosts, hosts }, between)?.bytesPerMicrosecond ?? 0;
  return rate('ring') / rate('collnet');
};

describe('large operations', () => {
  it.each([
    [2, 1],
    [4, 0.667],
    [8, 0.571],
    [11, 0.55],
  ])('%i hosts take %d of the time by a ring, which is n ÷ (2(n-1))', (hosts, expected) => {
    expect(ratio(hosts, { by: 'plugin' })).toBeCloseTo(expected, 3);
    expect(ratio(hosts, { by: 'aggregators', aggregators: [other(40_000)] })).toBeCloseTo(expected, 3);
  });

  it('one aggregator whose link is like those of the hosts takes n² ÷ (2(n-1)) of the time by a ring', () => {
    expect(ratio(4, { by: 'aggregators', aggregators: [other(SLOW_MBPS)] })).toBeCloseTo(4 / 1.5);
    expect(ratio(4, { by: 'aggregators', aggregators: [other(0)] })).toBeCloseTo(4 / 1.5);
  });
});

describe('the sizes of which a plan takes it', () => {
  // Links of 300 Mb/s: 37.5 bytes per microsecond. One-shot: 2 + 18 + 2·5 = 30 µs and 3 bytes of each; two-shot: 2 + 2·18 + 2·2·5 = 58 µs and 1.5.
  it('a plan takes the network from where the bytes that it saves cost more than its messages', () => {
    // 2 + 2·18 + 4·11 = 82 µs and 1 byte of each: (82 - 58) · 37.5 ÷ 0.5 = 1800.
    expect(rows(input(4, 4, [other(40_000)]))).toEqual([
      '700 directOneShot',
      '1800 directTwoShot',
      'null collnet | directTwoShot',
    ]);
    // A switch has no messages to handle: 38 µs, so (38 - 30) · 37.5 ÷ 2 = 150.
    expect(rows(input(4, 4, []), PLUGIN)).toEqual([
      '150 directOneShot',
      '700 collnet | directOneShot',
      'null collnet | directTwoShot',
    ]);
  });

  it('a plan takes no aggregator that gets everything over one slow link', () => {
    const alone = rows(input(4, 4, []));
    expect(alone).toEqual(['700 directOneShot', 'null directTwoShot']);
    for (const aggregators of [[other(SLOW_MBPS)], [other(0)], [member(0)], onEach(4)])
      expect(rows(input(4, 4, aggregators))).toEqual(alone);
    expect(rows(input(4, 4, [other(40_000)]), { NCCL_COLLNET_ENABLE: '0' })).toEqual(alone);
  });

  it('a plan takes no fast aggregator beside a slow one that groups might choose', () => {
    expect(rows(input(4, 4, [other(40_000), { place: 'other', name: 'h6', speedMbps: SLOW_MBPS }]))).toEqual(
      rows(input(4, 4, [])),
    );
  });

  it('a plan takes no network for two hosts, which gain nothing', () => {
    expect(rows(input(2, 2, [other(40_000)]))).toEqual(rows(input(2, 2, [])));
  });

  it('a plan takes chains in hosts with unlike numbers of ranks', () => {
    expect(rows(input(5, 4, [other(40_000)])).at(-1)).toContain('collnetChain');
  });

  it.each(['collnet', 'CollNetDirect', 'ring;allreduce:collnet'])(
    'a plan takes the network for all sizes with NCCL_ALGO=%s',
    (wish) => {
      expect(rows(input(4, 4, [other(SLOW_MBPS)]), { NCCL_ALGO: wish })).toEqual([
        '700 collnet | directOneShot',
        'null collnet | directTwoShot',
      ]);
    },
  );

  it('a plan compares the network with what NCCL_ALGO names beside it', () => {
    // A ring: 2 + 6·18 = 110 µs and 1.5 bytes of each, so the network is faster always.
    expect(rows(input(4, 4, [other(40_000)]), { NCCL_ALGO: 'ring,collnet' })).toEqual(['null collnet | ring']);
    expect(rows(input(4, 4, [other(40_000)]), { NCCL_ALGO: '^collnet' })).toEqual(rows(input(4, 4, [])));
    expect(rows(input(4, 4, [other(40_000)]), { NCCL_ALGO: 'ring' })).toEqual(['null ring']);
  });

  it('a plan takes no network with a protocol that it does not have', () => {
    expect(rows(input(4, 4, [other(40_000)]), { NCCL_PROTO: 'LL' })).toEqual(
      rows(input(4, 4, []), { NCCL_PROTO: 'LL' }),
    );
  });

  it('a plan takes the network for all-reduces alone', () => {
    const { tuning } = new Planner(null, PLUGIN).plan(input(8, 8, []), true);
    const reduced = tuning.filter(({ variants }) => variants.some(({ algorithm }) => algorithm === 'collnet'));
    expect(new Set(reduced.map(({ collective }) => collective))).toEqual(new Set(['allReduce']));
  });
});

/** What the planner says of idle aggregators. */
function said(planned: PlanInput, environment: Environment = {}, wholeJob = true): string[] {
  const sentences: string[] = [];
  new Planner(null, environment, undefined, (sentence) => sentences.push(sentence)).plan(planned, wholeJob);
  return sentences;
}

describe('a job whose aggregators stay idle', () => {
  const IDLE = '--collnet: the ranks reduce without the aggregators: ';

  it('a job with idle aggregators learns what limits them', () => {
    expect(said(input(4, 4, [other(SLOW_MBPS)]))).toEqual([
      `${IDLE}through them 64 MiB would take 7160 ms instead of 2680 (the aggregator on h5: 4 hosts send it 64 MiB each over ` +
        '300 Mb/s); NCCL_ALGO=collnet uses them all the same',
    ]);
    const busiest =
      'the busiest of 4 aggregators, such as that on host0: 3 other hosts send it 16 MiB each over 300 Mb/s';
    expect(said(input(4, 4, onEach(4)))).toEqual([expect.stringContaining(busiest)]);
  });

  it('a job with idle aggregators learns that it forbade them', () => {
    expect(said(input(4, 4, [other(40_000)]), { NCCL_ALGO: 'ring' })).toEqual([
      `${IDLE}NCCL_ALGO or NCCL_PROTO asks for others`,
    ]);
  });

  it('a job learns nothing where its aggregators are used, where there are none, and of communicators of some ranks', () => {
    expect(said(input(4, 4, [other(40_000)]))).toEqual([]);
    expect(said(input(4, 4, []))).toEqual([]);
    expect(said(input(4, 4, [other(40_000)]), { NCCL_COLLNET_ENABLE: '0' })).toEqual([]);
    expect(said(input(4, 4, [other(SLOW_MBPS)]), {}, false)).toEqual([]);
  });
});
