/** What `ncclrun plan --explain` says of all-reduces that a network can reduce. */
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { MeasuredVariant } from '../../control/planner/measured/table.ts';
import { Planner } from '../../control/planner/planner.ts';
import { byNetworkView } from '../../launcher/plan/by-network.ts';
import type { ByNetworkView } from '../../launcher/plan/by-network.ts';
import { byNetworkText } from '../../launcher/plan/by-network-text.ts';
import { binarySize } from '../../control/size-text.ts';
import { plannedAggregators } from '../../launcher/plan/aggregators.ts';
import { modelOf } from '../../launcher/plan/variants.ts';
import { refusal } from '../rig/captured.ts';
import { expectText } from '../rig/expected.ts';
import { member, other, reducedInput as input } from '../rig/reduced-hosts.ts';

afterEach(() => void vi.unstubAllEnvs());

const MEBIBYTE = 2 ** 20;

function viewOf(
  planned: PlanInput,
  measured: readonly MeasuredVariant[] = [],
  sizes = [1024, MEBIBYTE, 64 * MEBIBYTE],
): ByNetworkView | null {
  const { tuning } = new Planner(null, process.env).plan(planned, true);
  const model = modelOf(planned, null);
  return model === null ? null : byNetworkView({ ...model, tuning, measured, sizes });
}

/** The limits at the sizes of the ranges. */
const limits = (planned: PlanInput): string[] => (viewOf(planned)?.ranges ?? []).map(({ limit }) => limit);

test.each<[string, PlanInput, Readonly<Record<string, string>>]>([
  ['fast aggregator', input(4, 4, [other(40_000)]), {}],
  ['aggregator on a slow link', input(4, 4, [other(300)]), {}],
  ['aggregators on all hosts', input(16, 4, [0, 1, 2, 3].map(member)), {}],
  ['aggregators of unknown links', input(4, 4, [other(0), other(0, 'h6')], 0), {}],
  ['plugin', input(8, 4, []), { NCCL_COLLNET_ENABLE: '1' }],
  ['forced aggregator', input(4, 4, [other(300)]), { NCCL_ALGO: 'collnetdirect' }],
  ['unlike hosts', input(5, 4, [other(300)]), {}],
  ['excluded aggregator', input(4, 4, [other(40_000)]), { NCCL_ALGO: 'ring' }],
])('the explanation of %s is the expected one', async (name, planned, variables) => {
  for (const [variable, value] of Object.entries(variables)) vi.stubEnv(variable, value);
  await expectText(`plan/by-network-${name.replaceAll(' ', '-')}.txt`, byNetworkText(viewOf(planned)));
});

test('nothing is said where no network reduces', () => {
  expect(byNetworkText(viewOf(input(4, 4, [])))).toBe('');
});

describe('what limits the network', () => {
  it('latency limits small operations, and links limit large ones', () => {
    expect(limits(input(4, 4, [other(40_000)]))).toEqual([
      "latency: the two transfers between hosts and the aggregator's messages for 4 members take 82 µs",
      'the link of each host: 64 MiB each way over 300 Mb/s',
    ]);
  });

  it('the link of the aggregator limits where it carries most', () => {
    expect(limits(input(4, 4, [other(300)]))).toEqual([
      'the aggregator on h5: 4 hosts send it 64 MiB each over 300 Mb/s',
    ]);
    expect(limits(input(2, 2, [member(1)]))).toEqual(['the link of each host: 64 MiB each way over 300 Mb/s']);
    expect(limits(input(3, 3, [member(1)]))).toEqual([
      'the aggregator on host1: 2 other hosts send it 64 MiB each over 300 Mb/s, which the ranks there use too',
    ]);
  });

  it('the thread of the aggregator or the cores of the ranks limit where links are fast', () => {
    expect(limits(input(8, 8, [other(400_000)], 100_000))).toEqual([
      'the aggregator on h5: its thread receives, reduces and sends 8 times 64 MiB',
    ]);
    vi.stubEnv('NCCL_COLLNET_ENABLE', '1');
    expect(limits(input(16, 8, [], 100_000)).at(-1)).toBe('the core of each rank, which sends and receives 32 MiB');
  });

  it('the busiest of several aggregators limits', () => {
    expect(limits(input(4, 4, [other(300), other(300, 'h6')]))).toEqual([
      'the busiest of 2 aggregators, such as that on h5: 4 hosts send it 32 MiB each over 300 Mb/s',
    ]);
  });
});

test('measured times stand beside the predicted ones', () => {
  const times: [number, number][] = [[MEBIBYTE, 28_500]];
  const variant = { algorithm: 'collnet', protocol: 'simple', channels: 1, threads: 64, times } as const;
  const view = viewOf(input(4, 4, [other(40_000)]), [variant], [MEBIBYTE]);
  expect(view?.ranges.at(-1)).toMatchObject({
    isTaken: true,
    bytes: MEBIBYTE,
    collnet: { measuredMicroseconds: 28_500 },
    other: { measuredMicroseconds: null },
  });
  expect(byNetworkText(view)).toContain(' (measured 28500)');
});

it.each([
  [0, '0 bytes'],
  [1, '1 bytes'],
  [999, '999 bytes'],
  [1024, '1 KiB'],
  [1536, '1.5 KiB'],
  [2 ** 20, '1 MiB'],
  [2 ** 26, '64 MiB'],
  [2 ** 30, '1 GiB'],
  [2 ** 40, '1 TiB'],
  [2 ** 49, '512 TiB'],
  [2 ** 51, '2050 TiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(binarySize(bytes)).toBe(text);
});

describe('the aggregators that ncclrun plan plans with', () => {
  it.each<[string, Parameters<typeof plannedAggregators>[0], readonly AggregatorPlace[]]>([
    ['no aggregators without an option', { count: null, words: [], hosts: 2 }, []],
    ['no aggregators with --collnet=0', { count: 0, words: ['h5'], hosts: 2 }, []],
    ['one on each host with --collnet', { count: 'auto', words: [], hosts: 2 }, [member(0), member(1)]],
    ['on the first hosts with a number', { count: 1, words: [], hosts: 2 }, [member(0)]],
    ['more on the first hosts', { count: 3, words: [], hosts: 2 }, [member(0), member(0), member(1)]],
    ['one on each that is named', { count: null, words: ['host1,h5'], hosts: 2 }, [member(1), other(0)]],
    ['as many as wanted there', { count: 3, words: ['h5', 'host0'], hosts: 2 }, [other(0), other(0), member(0)]],
  ])('ncclrun plan plans with %s', (_, wanted, expected) => {
    expect(plannedAggregators(wanted)).toEqual(expected);
  });

  it.each([
    ['host2', 'there is no host2, the plan has host0 to host1'],
    ['h5,,h6', 'a name is empty'],
    ['/none.xml', 'there is no file /none.xml'],
  ])('ncclrun plan refuses aggregators on %s', async (word, message) => {
    const ask = (): Promise<number> =>
      Promise.resolve(plannedAggregators({ count: null, words: [word], hosts: 2 }).length);
    expect(await refusal(ask)).toContain(message);
  });
});
