/** From what bench/gpu/collectives wrote to curves and tables. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { curvesOf, ratiosOf } from '../../bench/gpu/charts/curves.ts';
import { floorOf } from '../../bench/gpu/charts/floor.ts';
import { binarySizeText, timeText } from '../../bench/gpu/charts/numbers.ts';
import { read, Results } from '../../bench/gpu/charts/results.ts';
import { chartSvg } from '../../bench/gpu/charts/svg.ts';
import { tableOf } from '../../bench/gpu/charts/table.ts';
import { repository } from '../rig/cluster.ts';
import { shapesOf } from '../rig/svg.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-charts-'));
afterAll(() => rmSync(directory, { recursive: true }));

function line(collective: string, bytes: number, mode: string, theirs: number, ours: number | null): string {
  const figure = (us: number): object => ({ us, least_us: us, most_us: us, bus_gbs: bytes / us / 1000, wrong: 0 });
  return JSON.stringify({
    collective,
    bytes,
    mode,
    ranks: 4,
    launch_floor_us: 1,
    theirs: figure(theirs),
    ours: ours === null ? { why_not: 'hung before', wrong: 0 } : figure(ours),
  });
}

/** All kinds of lines that there are. */
const LINES = [
  '{"library":"ours","path":"/ours","version":22900,"usable":true,"ranks":4}',
  '{"library":"theirs","path":"/theirs","version":22809,"usable":true,"ranks":4}',
  '{"empty_kernel_us":3,"empty_kernel_graph_us":0.75,"copies_gbs":390,"stores_gbs":360,"ranks":4}',
  line('all_reduce', 8, 'graph', 8, 4),
  line('all_reduce', 1_048_576, 'graph', 18, 20),
  line('all_reduce', 1_048_576, 'graph-window', 16, 12),
  line('all_reduce', 268_435_456, 'graph', 1200, 1120),
  line('all_gather', 8192, 'eager', 7.5, null),
  line('barrier', 0, 'graph', 5, 2.5),
  '{"lost":"hung","what":"ours: alltoall of 8 bytes"}',
  '{"init":"ours","round":0,"join_us":1,"first_us":2,"large_us":3,"leave_us":4,"ranks":4}',
].join('\n');

const TABLE = JSON.stringify({
  what: 'NCCL alone',
  collectives: { all_reduce: { 'plain-graph': { '0': [0.1, 0], '8': [9, 0], '64': [10, 0.01] } } },
});

function results(...texts: string[]): Results {
  const all = new Results();
  texts.forEach((text, index) => read(all, text, `file${index}`));
  return all;
}

describe('results', () => {
  test('Results merges collectives and single-library files, and the first file wins', () => {
    const both = results(LINES, TABLE);
    const theirs = { collective: 'all_reduce', timing: 'graph', library: 'theirs', buffers: 'plain' } as const;
    expect(both.curve(theirs).map(({ bytes, microseconds }) => [bytes, microseconds])).toEqual([
      [8, 8],
      [64, 10],
      [1_048_576, 18],
      [268_435_456, 1200],
    ]);
    expect(both.curve({ ...theirs, library: 'ours', buffers: 'window' })).toHaveLength(1);
    expect(both.curve({ ...theirs, collective: 'all_gather', timing: 'eager', library: 'ours' })).toEqual([]);
    expect(both.limits).toEqual({ ranks: 4, launch: { eager: 3, graph: 0.75 }, copies: 390, stores: 360 });
    expect(both.about).toEqual(['ours: version 22900, 4 ranks', 'theirs: version 22809, 4 ranks', 'NCCL alone']);
  });

  test('older results take stores from copies and the number of ranks from the first line', () => {
    const older = LINES.replace(',"stores_gbs":360,"ranks":4', '');
    expect(results(older).limits).toMatchObject({ ranks: 4, stores: 390 });
  });

  test('the failure of invalid results names the line', () => {
    expect(() => results('{"collective":"all_reduce","bytes":"many"}')).toThrow(/^file0:1: no line of collectives/);
    expect(() => results('{"what":"a table","collectives":3}')).toThrow(/^file0: /);
  });
});

test('the floor is the launch time or the bytes at the applicable bandwidth', () => {
  const limits = { ranks: 4, launch: { graph: 0.75, eager: 3 }, copies: 390, stores: 360 };
  expect(floorOf('all_reduce', 'graph', 8, limits)).toBe(0.75);
  expect(floorOf('all_reduce', 'graph', 360e6, limits)).toBeCloseTo(1500);
  expect(floorOf('reduce_scatter', 'eager', 360e6, limits)).toBeCloseTo(750);
  expect(floorOf('alltoall', 'eager', 390e6, limits)).toBeCloseTo(750);
  expect(floorOf('broadcast', 'graph', 390e6, limits)).toBeCloseTo(1000);
  expect(floorOf('broadcast', 'graph', 390e6, { ...limits, copies: 0, stores: 0 })).toBe(0.75);
});

test('a table has columns for ours, NCCL and the floor, with slower times in bold', () => {
  const [head, , small, large] = tableOf(results(LINES), 'all_reduce', 'graph').split('\n');
  expect(head).toBe(
    '| bytes | ours, µs | NCCL, µs | ratio | ours, window, µs | NCCL, window, µs | ratio | GB/s | floor, µs | of the floor |',
  );
  expect(small).toBe('| 8 B | 4.0 | 8.0 | 0.50 |  |  |  | 0.0 | 0.8 | 0.19 |');
  expect(large).toBe('| 1 MiB | 20.0 | 18.0 | **1.11** | 12.0 | 16.0 | 0.75 | 52.4 | 4.4 | 0.22 |');
});

test('sizes and times are printed with few digits', () => {
  expect([8, 1024, 1536, 2 ** 30].map(binarySizeText)).toEqual(['8 B', '1 KiB', '1.5 KiB', '1 GiB']);
  expect([0.75, 99.94, 123.4, 4534.38].map(timeText)).toEqual(['0.8', '99.9', '123', '4534']);
});

describe('a chart', () => {
  const curves = curvesOf(results(LINES), 'all_reduce', 'graph');
  const shapes = shapesOf(chartSvg('all_reduce, in a graph', curves));

  test('the chart has a line inside the picture for each curve in each panel', () => {
    expect(curves.map(({ kind }) => kind)).toEqual(['floor', 'theirs', 'theirs-window', 'ours', 'ours-window']);
    const [picture] = shapes;
    const lines = shapes.filter(({ attributes }) => attributes['class']?.startsWith('curve') ?? false);
    // The legend, time, bandwidth; ours by theirs and where they are equal.
    expect(lines).toHaveLength(3 * curves.length + 3);
    for (const { attributes } of lines) {
      const numbers = (attributes['d'] ?? '').match(/-?[\d.]+/gu)?.map(Number) ?? [];
      expect(numbers.length).toBeGreaterThan(0);
      expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...numbers)).toBeLessThanOrEqual(Number(picture?.attributes['width']));
    }
  });

  test('the chart has labels for curves and axes', () => {
    const words = shapes.filter(({ name }) => name === 'text').map(({ text }) => text);
    for (const word of ['floor', 'NCCL', 'NCCL, window', 'ncclrun', 'microseconds', 'bus bandwidth, GB/s', '10', '100'])
      expect(words).toContain(word);
    expect(words.some((word) => word.endsWith('MiB'))).toBe(true);
  });

  test('the chart has ratios only for sizes that both libraries measured', () => {
    const [equal, plain, window] = ratiosOf(curves);
    expect(equal?.places).toEqual([
      [8, 1],
      [268_435_456, 1],
    ]);
    expect(plain?.places.map(([, ratio]) => Number(ratio.toFixed(2)))).toEqual([0.5, 1.11, 0.93]);
    expect(window?.places).toEqual([[1_048_576, 0.75]]);
    expect(ratiosOf(curvesOf(results(TABLE), 'all_reduce', 'graph'))).toEqual([]);
  });
});

test('bench/gpu/charts.ts writes the tables and pictures', () => {
  const file = join(directory, 'results.jsonl');
  writeFileSync(file, LINES);
  const out = join(directory, 'charts');
  execFileSync(process.execPath, [join(repository, 'bench/gpu/charts.ts'), '--out', out, file]);
  expect(readdirSync(out).toSorted()).toEqual(['README.md', 'all_gather-eager.svg', 'all_reduce-graph.svg']);
  const page = readFileSync(join(out, 'README.md'), 'utf8');
  expect(page).toContain('## all_reduce, in a graph\n\n![all_reduce, in a graph](all_reduce-graph.svg)\n\n| bytes |');
  expect(page).toContain('copy engines 390 GB/s, stores of SMs 360');
});
