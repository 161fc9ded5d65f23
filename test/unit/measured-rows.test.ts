/** From measured times to rows: times between and beyond sizes, where variants change, and which variants may be taken. */
import { describe, expect, test } from 'vitest';
import type { TuningRow, Variant } from '../../control/plan/types.ts';
import { withFallback } from '../../control/planner/measured/candidates.ts';
import { measuredAt, measuredRows } from '../../control/planner/measured/rows.ts';
import { parseTable, printTable, type MeasuredVariant, type Table } from '../../control/planner/measured/table.ts';
import { crossingBytes, isMeasuredAt, timeAt } from '../../control/planner/measured/times.ts';
import { NO_PREFERENCES } from '../../control/planner/input/preferences.ts';

type Times = [number, number][];

describe('times', () => {
  const rising: Times = [
    [100, 10],
    [200, 30],
    [400, 90],
  ];
  const falling: Times = [
    [100, 30],
    [200, 10],
  ];

  test.each<[Times, number, number]>([
    [rising, 0, 10],
    [rising, 100, 10],
    [rising, 101, 10.2],
    [rising, 199, 29.8],
    [rising, 200, 30],
    [rising, 300, 60],
    [rising, 400, 90],
    [rising, 500, 120],
    [falling, 150, 20],
    [falling, 300, 10],
    [[[100, 7]], 99, 7],
    [[[100, 7]], 101, 7],
    [[], 1, Infinity],
  ])('timeAt predicts of %j at %i bytes %d us', (times, bytes, expected) => {
    expect(timeAt(times, bytes)).toBeCloseTo(expected, 9);
  });

  test('a size was measured or not', () => {
    expect([100, 150, 400].map((bytes) => isMeasuredAt(rising, bytes))).toEqual([true, false, true]);
  });

  test.each<readonly [Times, Times, number, number, number]>([
    [
      [
        [100, 10],
        [200, 30],
      ],
      [
        [100, 20],
        [200, 20],
      ],
      100,
      200,
      150,
    ],
    [
      [
        [100, 10],
        [200, 30],
      ],
      [
        [100, 13],
        [200, 20],
      ],
      100,
      200,
      123,
    ],
    [
      [
        [100, 10],
        [200, 30],
      ],
      [
        [100, 10],
        [200, 10],
      ],
      100,
      200,
      100,
    ],
    [
      [
        [100, 10],
        [200, 20],
      ],
      [
        [100, 20],
        [200, 20],
      ],
      100,
      200,
      199,
    ],
    [
      [
        [100, 10],
        [200, 20],
      ],
      [
        [100, 12],
        [200, 30],
      ],
      100,
      200,
      141,
    ],
    [
      [
        [100, 10],
        [200, 20],
      ],
      [
        [100, 10],
        [200, 20],
      ],
      100,
      200,
      141,
    ],
    [
      [
        [100, 10],
        [200, 30],
      ],
      [[200, 20]],
      100,
      200,
      141,
    ],
    [
      [[200, 30]],
      [
        [100, 10],
        [200, 30],
      ],
      100,
      200,
      141,
    ],
  ])('%j and %j cross between %i and %i bytes at %i', (one, other, from, to, expected) => {
    expect(crossingBytes(one, other, from, to)).toBe(expected);
  });
});

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
const tree: Variant = { ...plain, algorithm: 'tree' };
const planned: TuningRow[] = [
  { collective: 'allReduce', upToBytes: 99, variants: [tree] },
  { collective: 'allReduce', upToBytes: 1000, variants: [plain] },
  { collective: 'allReduce', upToBytes: null, variants: [tree] },
  { collective: 'reduce', upToBytes: null, variants: [tree] },
];

function measured(changes: Partial<MeasuredVariant>, ...times: [number, number][]): MeasuredVariant {
  return { algorithm: 'ring', protocol: 'simple', channels: 1, threads: 64, ...changes, times };
}

const key: Table['key'] = {
  device: 'host',
  ranks: 2,
  topology: null,
  processor: null,
  cores: 1,
  gpu: null,
  computeCapability: null,
  driver: null,
};

function table(...variants: MeasuredVariant[]): Table {
  return { formatVersion: 1, key, measuredAt: '', version: '', collectives: [{ collective: 'allReduce', variants }] };
}

function rows(variants: MeasuredVariant[], { min = 1, max = 64, channels = 8, lacks = '' } = {}): string[] {
  const made = measuredRows(planned, table(...variants), {
    preferences: { ...NO_PREFERENCES, channels: { min, max } },
    channels,
    has: (_, { algorithm }) => algorithm !== lacks,
    variantOf: (_, { algorithm, protocol, channels: count, threads }) => ({
      ...plain,
      algorithm,
      protocol,
      channels: count,
      threads,
    }),
  });
  return made
    .filter(({ collective }) => collective === 'allReduce')
    .map(({ upToBytes, variants: [first] }) =>
      [
        upToBytes,
        first?.algorithm,
        first?.channels,
        first?.predictedMicroseconds,
        first?.predictedMicrosecondsPerMebibyte,
      ].join(' '),
    );
}

describe('rows', () => {
  test.each<readonly [string, MeasuredVariant[], string[]]>([
    ['nothing', [], ['99 tree 1 0 0', '1000 ring 1 0 0', ' tree 1 0 0']],
    [
      'one size of the plan',
      [measured({}, [100, 5])],
      ['99 tree 1 0 0', '100 ring 1 5 0', '1000 ring 1 0 0', ' tree 1 0 0'],
    ],
    [
      'sizes across rows',
      [measured({}, [50, 5], [2000, 205])],
      ['49 tree 1 0 0', '2000 ring 1 0.015625 107479.046875', ' tree 1 0 0'],
    ],
    ['a line that begins above nothing', [measured({}, [0, 8], [1048576, 16])], ['1048576 ring 1 8 8', ' tree 1 0 0']],
    ['a falling line', [measured({}, [100, 8], [1000, 4])], ['99 tree 1 0 0', '1000 ring 1 8 0', ' tree 1 0 0']],
    [
      'variants that cross',
      [measured({}, [100, 8], [1000, 16]), measured({ algorithm: 'tree' }, [100, 16], [1000, 8])],
      ['99 tree 1 0 0', '550 ring 1 7.109375 9320.671875', '1000 tree 1 11.984375 0', ' tree 1 0 0'],
    ],
  ])('a table with %s gives its rows', (_, variants, expected) => {
    expect(rows(variants)).toEqual(expected);
  });

  const fast = (channels: number, time: number) => measured({ channels }, [100, time]);
  test.each([
    [{}, '100 ring 4 1 0'],
    [{ max: 2 }, '100 ring 2 2 0'],
    [{ channels: 3 }, '100 ring 2 2 0'],
    [{ min: 3 }, '100 ring 4 1 0'],
    [{ min: 5 }, '100 ring 4 1 0'],
    [{ lacks: 'ring' }, '1000 ring 1 0 0'],
  ])('the limits %j make the row at 100 bytes %j', (limits, expected) => {
    expect(rows([fast(1, 3), fast(2, 2), fast(4, 1)], limits)[1]).toBe(expected);
  });

  test('what is as fast within 3 % stays as planned, or as for the size before', () => {
    const [ring, other] = [
      measured({}, [200, 1.029], [400, 1.029]),
      measured({ algorithm: 'tree' }, [200, 1], [400, 1]),
    ];
    expect(rows([ring, other])[1]).toMatch(/^\d+ ring 1 /u);
    expect(rows([measured({}, [200, 1.031], [400, 1.031]), other])[1]).toMatch(/^199 ring/u);
    const at = (bytes: number) => measuredAt([ring, other], bytes, () => false);
    expect(at(200)).toEqual({ variant: other, microseconds: 1 });
    expect([at(199), at(401)]).toEqual([null, null]);
    expect(at(300)?.microseconds).toBe(1);
    const steady = measuredAt(
      [measured({}, [100, 1], [200, 1.02]), measured({ algorithm: 'tree' }, [100, 2], [200, 1])],
      200,
      () => false,
    );
    expect(steady?.variant.algorithm).toBe('ring');
  });
});

test('variants that not every call can have are followed by one that it can', () => {
  expect(withFallback({ ...plain, algorithm: 'copyEngine' }, tree)).toEqual([
    { ...plain, algorithm: 'copyEngine', requires: ['publishedAddresses'] },
    tree,
  ]);
  expect(withFallback({ ...plain, protocol: 'll128', requires: ['notCaptured'] }, tree)).toEqual([
    { ...plain, protocol: 'll128', requires: ['wholeLines'] },
    plain,
  ]);
  expect(withFallback({ ...plain, requires: ['notCaptured'] }, tree)).toEqual([plain]);
});

const read = (variant: MeasuredVariant) => () => parseTable(printTable(table(variant)));

test('a table has rising sizes, and variants that can be', () => {
  const usual = measured({}, [1, 5], [2, 5]);
  for (const fine of [usual, { ...usual, threads: 1024 }]) expect(read(fine)()).toEqual(table(fine));
  expect(read(measured({}, [2, 5], [2, 5]))).toThrow('collectives.0.variants.0.times: sizes must rise');
  expect(read(measured({}, [3, 5], [2, 5]))).toThrow('sizes must rise');
  const wrong: Times[] = [[[0, 1]], [[1, 0]], []];
  for (const times of wrong) expect(read(measured({}, ...times))).toThrow('times');
  for (const threads of [32, 65, 96.5, 1056]) expect(read({ ...usual, threads })).toThrow('variants.0.threads');
  for (const channels of [0, 1.5]) expect(read({ ...usual, channels })).toThrow('variants.0.channels');
});
