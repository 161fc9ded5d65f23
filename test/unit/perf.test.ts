import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { perf } from '../../launcher/cli/commands/perf.ts';
import type { OutputChunk } from '../../launcher/model/event.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import type { JobResult, Reporter } from '../../launcher/model/types.ts';
import { PerfReporter } from '../../launcher/report/perf.ts';
import { parsePerfLine, type PerfRow } from '../../launcher/report/perf-rows.ts';
import { tableFoot, wrongElements } from '../../launcher/report/perf-table.ts';
import { Writer } from '../../launcher/report/writer.ts';

const head = { collective: 'all_reduce', device: 'host', ranks: 4, hosts: 1 };
const row = (bytes: number, inPlace: boolean, wrong: number | null = 0): PerfRow => ({
  bytes,
  count: bytes / 4,
  type: 'float',
  op: 'sum',
  root: -1,
  inPlace,
  timeUs: inPlace ? 3.21 : 12_345.678,
  algbw: 1.234,
  busbw: 1.851,
  wrong,
});
const measured = [head, row(8, false), row(8, true), row(16, false), row(16, true)];
const lines = (values: readonly unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');

function rig(json: boolean, isDeviceGiven = true) {
  const seen = { stdout: '', inner: '' };
  const stream = new PassThrough();
  stream.on('data', (data: Buffer) => (seen.stdout += data.toString()));
  const inner: Reporter = {
    event() {},
    async output({ rank, stream: name, bytes }) {
      seen.inner += `${rank} ${name} ${Buffer.from(bytes).toString()}`;
    },
    async result() {},
  };
  return { seen, reporter: new PerfReporter(inner, new Writer(() => stream), json, isDeviceGiven) };
}

const piece = (text: string, rank = 0, stream: OutputChunk['stream'] = 'stdout'): OutputChunk => ({
  rank,
  host: 'n',
  stream,
  bytes: Buffer.from(text),
  time: 0,
  partial: !text.endsWith('\n'),
});

const ended: JobResult = {
  schemaVersion: 1,
  jobId: 'j',
  ok: true,
  reason: 'ok',
  exitCode: 0,
  restarts: 0,
  failures: [],
  verdicts: [],
  hosts: [],
  ranks: [],
  phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
};

describe('the table', () => {
  test('the first line tells of host memory that nobody asked for', async () => {
    const { seen, reporter } = rig(false, false);
    await reporter.output(piece(lines(measured)));
    expect(seen.stdout).toMatch(
      /^# host memory is measured, not GPUs: .*--device cuda says why\)\n# all_reduce on 4 ranks/u,
    );
    const gpus = rig(false, false);
    await gpus.reporter.output(piece(lines([{ ...head, device: 'cuda' }])));
    expect(gpus.seen.stdout).toMatch(/^# all_reduce on 4 ranks/u);
  });

  test('the table has the columns of nccl-tests and a line per size', async () => {
    const { seen, reporter } = rig(false);
    await reporter.output(piece(lines(measured)));
    await reporter.result(ended);
    const table = seen.stdout.split('\n');
    expect(table[0]).toBe('# all_reduce on 4 ranks, 1 host, device host');
    const columns = table
      .filter((line) => !line.startsWith('#') && line !== '')
      .map((line) => line.trim().split(/\s+/u));
    expect(columns).toEqual([
      ['8', '2', 'float', 'sum', '-1', '12346', '1.23', '1.85', '0', '3.21', '1.23', '1.85', '0'],
      ['16', '4', 'float', 'sum', '-1', '12346', '1.23', '1.85', '0', '3.21', '1.23', '1.85', '0'],
    ]);
    expect(
      table
        .find((line) => line.includes('redop'))
        ?.replace('#', '')
        .trim()
        .split(/\s+/u),
    ).toEqual('size count type redop root time algbw busbw #wrong time algbw busbw #wrong'.split(' '));
    expect(seen.stdout).toContain('# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.85100\n');
  });

  test('every row ends in the column where its title ends', async () => {
    const { seen, reporter } = rig(false);
    await reporter.output(piece(lines(measured)));
    const table = seen.stdout.split('\n');
    const titles = table.find((line) => line.includes('redop')) ?? '';
    expect(table.find((line) => line.includes(' float '))?.length).toBe(titles.length);
  });

  test('the table is the same for any division of the input', async () => {
    const { seen, reporter } = rig(false);
    const text = lines(measured);
    for (let start = 0; start < text.length; start += 7) await reporter.output(piece(text.slice(start, start + 7)));
    await reporter.result(ended);
    const whole = rig(false);
    await whole.reporter.output(piece(text));
    await whole.reporter.result(ended);
    expect(seen.stdout).toBe(whole.seen.stdout);
  });

  test('rows of one size with different types or operators stay separate', async () => {
    const { seen, reporter } = rig(false);
    const others = [row(8, false), { ...row(8, false), type: 'half' }, { ...row(8, true), op: 'max' }];
    await reporter.output(piece(lines([head, ...others])));
    await reporter.result(ended);
    expect(seen.stdout.match(/N\/A +N\/A +N\/A +N\/A/gu)).toHaveLength(3);
  });

  test('a row shows N/A for the half that is missing', async () => {
    const { seen, reporter } = rig(false);
    await reporter.output(piece(lines([head, row(8, false), row(16, true)])));
    await reporter.result(ended);
    expect(seen.stdout).toMatch(/ {2}8 .* 1\.85 +0 +N\/A +N\/A +N\/A +N\/A\n/u);
    expect(seen.stdout).toMatch(/ {2}16 .*-1 +N\/A +N\/A +N\/A +N\/A +3\.21 +1\.23 +1\.85 +0\n/u);
  });
});

test('--json prints a single document', async () => {
  const { seen, reporter } = rig(true);
  await reporter.output(piece(lines(measured)));
  expect(seen.stdout).toBe('');
  await reporter.result(ended);
  expect(JSON.parse(seen.stdout)).toEqual({
    schemaVersion: 1,
    ...head,
    rows: measured.slice(1),
    jobId: 'j',
    ok: true,
    reason: 'ok',
    exitCode: 0,
    failures: [],
  });
});

test('wrong elements fail a job that ended with 0', async () => {
  const { seen, reporter } = rig(true);
  await reporter.output(piece(lines([head, row(8, false, 3), row(8, true)])));
  expect(reporter.verdict(ended).exitCode).toBe(1);
  expect(reporter.verdict({ ...ended, ok: false, reason: 'timeout', exitCode: 124 }).exitCode).toBe(124);
  await reporter.result(ended);
  expect(JSON.parse(seen.stdout)).toMatchObject({ ok: false, reason: 'wrong-elements', exitCode: 1 });
});

test.each([
  [[row(8, false, null)], true],
  [[row(8, false, 0), row(8, true, 0)], true],
  [[row(8, false, 0), row(8, true, 1)], false],
  [[], true],
])('a job with the rows of case %# ended well: %s', async (rows, ok) => {
  const { reporter } = rig(true);
  await reporter.output(piece(lines([head, ...rows])));
  expect(reporter.verdict(ended)).toMatchObject({ ok, exitCode: ok ? 0 : 1 });
});

test('other output of the ranks goes to stderr', async () => {
  const { seen, reporter } = rig(false);
  await reporter.output(piece('hello\n{"bytes": 1}\n'));
  await reporter.output(piece('oops\n', 0, 'stderr'));
  await reporter.output(piece('from 1\n', 1));
  expect(seen.stdout).toBe('');
  expect(seen.inner).toBe('0 stderr hello\n{"bytes": 1}\n0 stderr oops\n1 stdout from 1\n');
});

test('wrongElements counts only elements that were checked', () => {
  expect(wrongElements([row(8, false, null)])).toBeNull();
  expect(wrongElements([row(8, false, 3), row(8, true, 0)])).toBe(3);
  expect(tableFoot([row(8, false, null)])).toContain('Out of bounds values : not checked');
  expect(tableFoot([row(8, false, 3)])).toContain('Out of bounds values : 3 FAILED');
  expect(tableFoot([])).toBe('');
});

test.each(['', 'x', '{', '{}', 'null', '{"collective": 1}', '{"bytes": "8"}'])('parsePerfLine rejects %j', (line) => {
  expect(parsePerfLine(line)).toBeNull();
});

describe('invalid command lines', () => {
  test.each<[string[], string]>([
    [[], 'no collective given'],
    [['all_redcue'], 'unknown collective "all_redcue"; did you mean all_reduce?'],
    [['all_reduce', 'x'], '"x" after all_reduce has no meaning'],
    [['all_reduce', '-b', '8', '-e', '4'], '-e 4 is less than -b 8'],
    [['all_reduce', '-b', 'huge'], '-b is "huge"; a number of bytes'],
    [['all_reduce', '-f', '1'], '-f is "1"; a whole number from 2'],
    [['all_reduce', '-d', 'nosuch'], '-d is "nosuch"; one of int8, uint8, int32, uint32, int64, uint64, half, float,'],
    [['all_reduce', '-o', 'xor'], '-o is "xor"; one of sum, prod, max, min, avg, mulsum, all is wanted'],
    [['all_reduce', '--iter', '3'], 'unknown option --iter; did you mean --iters?'],
  ])('perf rejects the arguments %o', async (argv, message) => {
    const error: unknown = await perf(argv).catch((thrown: unknown) => thrown);
    if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw error;
    expect(`${error.failure.message}; ${error.failure.remedy ?? ''}`).toContain(message);
  });
});
