/** `ncclrun perf net`: what it asks for, and how it prints what its ranks measured. */
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { perf } from '../../launcher/cli/commands/perf.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import type { JobResult, Reporter } from '../../launcher/model/types.ts';
import { NetReporter } from '../../launcher/report/net.ts';
import { mediansOf, slownessOf } from '../../launcher/report/net-medians.ts';
import { parseNetLine } from '../../launcher/report/net-rows.ts';
import type { MeasuredPair, NetPair } from '../../launcher/report/net-rows.ts';
import { Writer } from '../../launcher/report/writer.ts';

const nic = (name: string, port = 0) => ({ name, address: '10.0.0.1', port, speedMbps: 1000 });
const hostLine = (host: number, name: string) => ({ host, name, nics: [nic('eth0'), nic('mlx5_0', 1)] });
const pair = (from: number, to: number, latencyUs: number, gigabytes: readonly number[]): MeasuredPair => ({
  from,
  fromNic: 0,
  to,
  toNic: 0,
  latencyUs,
  latency99Us: latencyUs * 3,
  gigabytes: [...gigabytes],
  retransmits: 3,
  sentBytes: 1e6,
  error: null,
});
const broken = (from: number, to: number, error: string): NetPair => ({ from, fromNic: 1, to, toNic: 1, error });

const pairs = [
  pair(0, 1, 2, [10, 12]),
  pair(1, 0, 2, [10, 12]),
  pair(0, 2, 9, [10, 5]),
  pair(2, 0, 2, [10, 12]),
  broken(1, 2, 'mlx5_0 of b: no route to host'),
  broken(2, 1, 'mlx5_0 of b: no route to host'),
];
const lines = [{ network: 'IB', hosts: 3 }, hostLine(0, 'a'), hostLine(1, 'b'), hostLine(2, 'c'), ...pairs]
  .map((value) => `${JSON.stringify(value)}\n`)
  .join('');

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

async function printed(json: boolean, text = lines) {
  const seen = { stdout: '', inner: '' };
  const stream = new PassThrough();
  stream.on('data', (data: Buffer) => (seen.stdout += data.toString()));
  const inner: Reporter = {
    event() {},
    async output({ bytes }) {
      seen.inner += Buffer.from(bytes).toString();
    },
    async result() {},
  };
  const reporter = new NetReporter(inner, new Writer(() => stream), json, ['64K', '1M']);
  const chunk = { rank: 0, host: 'a', stream: 'stdout', bytes: Buffer.from(text), time: 0, partial: false } as const;
  await reporter.output(chunk);
  await reporter.result(ended);
  return { ...seen, verdict: reporter.verdict(ended) };
}

describe('the table of perf net', () => {
  test('it has a line for each direction, what failed, what is far slower, and a matrix', async () => {
    const { stdout, verdict } = await printed(false);
    expect(stdout.split('\n')).toEqual([
      '# network IB, 3 hosts, 2 NICs each; one pair after another',
      '#                             latency (us)  GB/s by size of messages',
      '# from        to           median     99 %      64K       1M',
      '  a eth0      b eth0         2.00     6.00    10.00    12.00',
      '  b eth0      a eth0         2.00     6.00    10.00    12.00',
      '  a eth0      c eth0         9.00    27.00    10.00     5.00',
      '  c eth0      a eth0         2.00     6.00    10.00    12.00',
      '  b mlx5_0:1  c mlx5_0:1  failed: mlx5_0 of b: no route to host',
      '  c mlx5_0:1  b mlx5_0:1  failed: mlx5_0 of b: no route to host',
      '# 2 of 6 failed',
      '# median: 2.00 us, 10.00 GB/s at 64K, 12.00 GB/s at 1M',
      '# far slower than the median:',
      '#   a eth0 to c eth0: latency 9.00 us, 5.00 GB/s at 1M',
      '#',
      '# latency (us) from row to column; * far slower than the median, x failed',
      '#      a     b     c',
      '#   a  -     2.00  9.00*',
      '#   b  2.00  -     x',
      '#   c  2.00  x     -',
      '# GB/s of 1M from row to column; * far slower than the median, x failed',
      '#      a      b      c',
      '#   a  -      12.00  5.00*',
      '#   b  12.00  -      x',
      '#   c  12.00  x      -',
      '',
    ]);
    expect(verdict).toEqual({ ok: false, reason: 'failed-pairs', exitCode: 1 });
  });

  test('where every pair failed there is no median', async () => {
    const { stdout } = await printed(
      false,
      lines
        .split('\n')
        .filter((line) => !/"error":null/.test(line))
        .join('\n'),
    );
    expect(stdout).toContain('# 2 of 2 failed\n');
    expect(stdout).not.toContain('median:');
  });

  test('what other programs print is passed on', async () => {
    const { stdout, inner } = await printed(false, 'hello\n{"network":5}\n{broken\n');
    expect([stdout, inner]).toEqual(['', 'hello\n{"network":5}\n{broken\n']);
  });

  test('--json prints one document', async () => {
    const { stdout } = await printed(true);
    const document: unknown = JSON.parse(stdout);
    expect(document).toMatchObject({
      schemaVersion: 1,
      network: 'IB',
      sizes: ['64K', '1M'],
      hosts: [{ name: 'a', nics: [{ name: 'eth0' }, { name: 'mlx5_0', port: 1 }] }, { name: 'b' }, { name: 'c' }],
      medians: { latencyUs: 2, gigabytes: [10, 12] },
      ok: false,
      reason: 'failed-pairs',
      exitCode: 1,
    });
    expect(document).toMatchObject({
      pairs: expect.arrayContaining([
        {
          from: { host: 0, nic: 0 },
          to: { host: 2, nic: 0 },
          latencyUs: 9,
          latency99Us: 27,
          gigabytes: [10, 5],
          retransmits: 3,
          sentBytes: 1e6,
          slow: { latency: true, gigabytes: [false, true] },
          error: null,
        },
        expect.objectContaining({ from: { host: 1, nic: 1 }, gigabytes: null, error: 'mlx5_0 of b: no route to host' }),
      ]),
    });
  });
});

describe('medians', () => {
  test('the median of an even number of pairs lies between the middle ones', () => {
    const two = [pair(0, 1, 1, [1]), pair(1, 0, 3, [2])];
    expect(mediansOf(two)).toEqual({ latencyUs: 2, gigabytes: [1.5] });
  });

  test('twice the latency and half of the bandwidth are not yet far slower', () => {
    const medians = { latencyUs: 2, gigabytes: [10] };
    expect(slownessOf(pair(0, 1, 4, [5]), medians)).toEqual({ latency: false, gigabytes: [false] });
    expect(slownessOf(pair(0, 1, 4.1, [4.9]), medians)).toEqual({ latency: true, gigabytes: [true] });
  });
});

test('a line that lacks a field is not a measurement', () => {
  expect(parseNetLine('{"from":0,"fromNic":0,"to":1,"toNic":0}')).toBeNull();
  expect(parseNetLine(JSON.stringify(pairs[0]))).toEqual(pairs[0]);
});

test.each([
  [['-n', '2'], /-n with perf net, which starts one rank on each host/],
  [['-N', '2'], /-N with perf net/],
  [['--sizes', '0'], /--sizes has "0"/],
  [['--sizes', '64K,2G'], /--sizes has "2G"/],
  [['--sizes', Array.from({ length: 17 }, () => '1K').join(',')], /--sizes has 17 sizes/],
  [['--nics', 'some'], /--nics is "some"/],
])('perf net %j is refused', async (argv, message) => {
  const error = await perf(['net', ...argv]).catch((reason: unknown) => reason);
  expect(error instanceof FailureError ? error.message : error).toMatch(message);
});
