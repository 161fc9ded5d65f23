/** `ncclrun tune`: the table while it is measured, what is stored, and what its command line asks for. */
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { JobEvent, OutputChunk } from '../../launcher/model/event.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import type { JobResult, RankMap } from '../../launcher/model/types.ts';
import { failureOf } from '../../launcher/job/system-failure.ts';
import { tune } from '../../launcher/cli/commands/tune.ts';
import { resultWithoutJob } from '../../launcher/cli/refused.ts';
import { TuneReporter, type TuneReporterOptions } from '../../launcher/tune/reporter.ts';
import { tableOfMeasured } from '../../launcher/tune/table.ts';
import { tuneHead, tuneLine } from '../../launcher/tune/text.ts';
import { describeIf, gpusHere } from '../rig/capability.ts';
import { captured, refusal } from '../rig/captured.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { plainReporter } from '../rig/plain-reporter.ts';

afterEach(() => void vi.unstubAllEnvs());

const head = { device: 'host', ranks: 2, hosts: 1 } as const;
const measured = (bytes: number, timeUs: number, planned = false, collective = 'all_reduce') => ({
  collective,
  bytes,
  algorithm: 1,
  protocol: 0,
  channels: 2,
  threads: 512,
  timeUs,
  spread: 0.05,
  planned,
});
const planned: JobEvent = { time: 0, type: 'tuning', host: 'h', ranks: 2, file: '/f', key: '{}', measured: false };
const okay: JobResult = {
  ...resultWithoutJob({ type: 'timeout', seconds: 1 }),
  ok: true,
  reason: 'ok',
  exitCode: 0,
  failures: [],
  jobId: 'j',
};
const mapOn = (ranks: number, ...names: readonly string[]): RankMap => ({
  hosts: names.map((name) => hostNamed(name, { local: name === 'localhost' })),
  ranks: Array.from({ length: ranks }, (_, rank) => {
    return { rank, host: 0, program: 0, localRank: rank, localSize: ranks, numa: null, gpu: null };
  }),
});

function rig(json = false, store?: TuneReporterOptions['store']) {
  const { streams, seen } = plainReporter();
  const inner = { events: new Array<JobEvent>(), output: '', results: new Array<JobResult>(), prepared: 0 };
  const stored: unknown[] = [];
  const reporter = new TuneReporter({
    inner: {
      prepare: async () => void (inner.prepared += 1),
      event: (event) => void inner.events.push(event),
      output: async ({ bytes }) => void (inner.output += Buffer.from(bytes).toString()),
      result: async (result) => void inner.results.push(result),
    },
    stdout: streams.stdout,
    json,
    maxSpread: 0.3,
    maxLoad: 0.1,
    store(rows, event, isHere) {
      stored.push([rows.map(({ bytes, timeUs }) => [bytes, timeUs]), event.file, isHere]);
      return store?.(rows, event, isHere) ?? { file: '/f', note: 'stored in /f' };
    },
  });
  const say = (lines: readonly object[], others = ''): Promise<void> => {
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('') + others);
    return reporter.output({ rank: 0, host: 'h', stream: 'stdout', time: 0, bytes, partial: false });
  };
  return { reporter, seen, inner, stored, say };
}

const machine = (host: string, others: number) => ({ host, processors: 4, others });

describe('the table while it is measured', () => {
  test('a size is printed when the next one begins, and the last one at the end', async () => {
    const { reporter, seen, inner, stored, say } = rig();
    const lineOf = (...rows: readonly ReturnType<typeof measured>[]) =>
      tuneLine(
        rows.map((row) => ({
          ...row,
          collective: 'all_reduce' as const,
          algorithm: 'directTwoShot' as const,
          protocol: 'simple' as const,
        })),
      );
    reporter.event(planned);
    reporter.event({ ...planned, file: '/other' });
    await say([head]);
    expect(seen.stdout).toBe('');
    await say([measured(8, 3, true), measured(8, 2)], 'noise\n');
    expect([seen.stdout, inner.output]).toEqual(['', 'noise\n']);
    await say([measured(16, 4)]);
    const first = tuneHead(head) + lineOf(measured(8, 3, true), measured(8, 2));
    expect(seen.stdout).toBe(first);
    await reporter.result(okay);
    expect(seen.stdout.split('\n').slice(-5)).toEqual([
      lineOf(measured(16, 4)).trimEnd(),
      '# all_reduce: what is planned was as fast at 0 of 1 sizes; most at 8 bytes: 50 % slower',
      '# the rounds of a time varied by 5 % (median), at most by 5 %',
      '# stored in /f',
      '',
    ]);
    expect(stored).toEqual([
      [
        [
          [8, 3],
          [8, 2],
          [16, 4],
        ],
        '/f',
        true,
      ],
    ]);
    expect([inner.results, inner.events.length]).toEqual([[okay], 2]);
  });

  test('other ranks and stderr are output of the job', async () => {
    const { reporter, inner } = rig();
    const chunk: OutputChunk = {
      rank: 1,
      host: 'h',
      stream: 'stdout',
      time: 0,
      bytes: Buffer.from('{"x"\n'),
      partial: false,
    };
    await reporter.output(chunk);
    await reporter.output({ ...chunk, rank: 0, stream: 'stderr' });
    expect(inner.output).toBe('{"x"\n{"x"\n');
  });

  test('a collective of the same size begins a size of its own', async () => {
    const { reporter, seen, say } = rig();
    await say([head, measured(8, 2), measured(8, 3, false, 'all_gather')]);
    await reporter.result(okay);
    expect(
      seen.stdout
        .split('\n')
        .filter((line) => line.startsWith(' '))
        .map((line) => line.trim().split(/ +/u)[0]),
    ).toEqual(['all_reduce', 'all_gather']);
  });

  test('--json prints one document at the end', async () => {
    const { reporter, seen, say } = rig(true);
    reporter.event(planned);
    await say([head, measured(8, 2), measured(16, 2)]);
    expect(seen.stdout).toBe('');
    await reporter.result(okay);
    expect(JSON.parse(seen.stdout)).toMatchObject({
      schemaVersion: 1,
      ...head,
      file: '/f',
      jobId: 'j',
      ok: true,
      rows: [{ bytes: 8 }, { bytes: 16 }],
    });
    const empty = rig(true);
    await empty.reporter.result({ ...okay, ranks: [], hosts: [{ name: 'h', ranks: [], state: 'ok' }] });
    expect(JSON.parse(empty.seen.stdout)).toMatchObject({ device: null, ranks: 0, hosts: 1, file: null, rows: [] });
  });
});

describe('what is stored', () => {
  test.each<[string, boolean, boolean, boolean]>([
    ['a job that failed', false, true, true],
    ['a job without rows', true, false, true],
    ['a job whose host planned nothing', true, true, false],
  ])('%s stores nothing', async (_what, ok, rows, plans) => {
    const { reporter, stored, seen, say } = rig();
    if (plans) reporter.event(planned);
    if (rows) await say([head, measured(8, 2)]);
    await reporter.result({ ...okay, ok });
    expect([stored, seen.stdout.includes('stored')]).toEqual([[], false]);
  });

  /** Rounds repeat every second time, and of 8 bytes not the fastest. */
  const halfUneven = [
    measured(8, 3, true),
    { ...measured(8, 2), spread: 0.31 },
    measured(16, 4),
    { ...measured(16, 5), spread: 2 },
  ];

  test('times that rounds do not repeat are not stored, and the reporter says how many', async () => {
    const { reporter, stored, seen, say } = rig();
    reporter.event(planned);
    const rows = [...halfUneven, { ...measured(16, 6), spread: 0.3 }, measured(16, 7)];
    await say([head, ...rows]);
    await reporter.result(okay);
    // Of 8 bytes the fastest is not known, so that nothing is stored; of 16 it is.
    expect(stored).toMatchObject([
      [
        [
          [16, 4],
          [16, 6],
          [16, 7],
        ],
        '/f',
        true,
      ],
    ]);
    expect(seen.stdout).toContain(
      '\n# 3 of 6 times varied by more than 30 % between rounds (median: 30 %) and are not stored; of 1 size nothing is\n# stored in /f\n',
    );
  });

  test('a job of which most times are left out stores nothing, and names the spread that would do', async () => {
    const { reporter, inner, stored, say } = rig();
    reporter.event(planned);
    await say([head, ...halfUneven]);
    await reporter.result(okay);
    expect(stored).toEqual([]);
    expect(inner.events.at(-1)).toMatchObject({
      failure: {
        type: 'unrepeatable',
        message:
          'nothing is stored: 3 of 4 times varied by more than 30 % between rounds (median: 31 %), or are of sizes whose fastest or planned variant did',
        remedy:
          'run it again when nothing else runs on the hosts (top shows what does), or allow more: --max-spread 31',
      },
    });
  });

  test('a job whose times all vary fails and stores nothing', async () => {
    const { reporter, inner, stored, say } = rig();
    reporter.event(planned);
    await say([head, { ...measured(8, 3, true), spread: 0.5 }]);
    await reporter.result(okay);
    expect(stored).toEqual([]);
    expect(inner.results).toMatchObject([{ ok: false, reason: 'unrepeatable', exitCode: 1 }]);
    expect(inner.events.at(-1)).toMatchObject({
      type: 'failure',
      failure: {
        message: expect.stringContaining(
          'the times of every size varied by more than 30 % between rounds (median: 50 %)',
        ),
      },
    });
  });

  const loaded = async (device: string, ...load: readonly object[]) => {
    const made = rig();
    made.reporter.event(planned);
    await made.say([{ ...head, device }, measured(8, 2, true), { load }]);
    await made.reporter.result(okay);
    return made;
  };

  test('a machine that others kept busy stores nothing, and the failure names the limit that would do', async () => {
    const { inner, stored, seen } = await loaded('host', machine('a', 0.5), machine('b', 1.61), machine('c', 0.3));
    expect(stored).toEqual([]);
    expect(seen.stdout).not.toContain('stored');
    expect(inner.results).toMatchObject([{ ok: false, reason: 'unrepeatable', exitCode: 1 }]);
    expect(inner.events.at(-1)).toMatchObject({
      failure: {
        message: 'nothing is stored: other processes used 1.6 of 4 processors of b during the measurement (also on a)',
        remedy: 'run it again when nothing else runs on the hosts (top shows what does), or allow more: --max-load 41',
      },
    });
  });

  test.each([
    ['host', 0.4, ['# other processes used 0.4 of 4 processors of a during the measurement']],
    ['host', 0.05, []],
    ['cuda', 4.5, ['# other processes used 4.5 of 4 processors of a during the measurement']],
  ])(
    'a table for device %s with a load of %d processors is stored with the remarks %j',
    async (device, others, remarks) => {
      const { stored, seen } = await loaded(device, machine('a', others));
      expect(stored).toHaveLength(1);
      expect(seen.stdout.match(/^# other processes .*$/gmu) ?? []).toEqual(remarks);
    },
  );

  test('a table that cannot be stored fails a job that ended well', async () => {
    const failure = { type: 'usage', message: 'full', remedy: null } as const;
    const { reporter, inner, say } = rig(false, () => {
      throw new FailureError(failure);
    });
    reporter.event(planned);
    await say([head, measured(8, 2)]);
    await reporter.result(okay);
    expect(inner.results).toMatchObject([{ ok: false, reason: 'usage', exitCode: 2, failures: [failure] }]);
    expect(inner.events.at(-1)).toMatchObject({ type: 'failure', primary: true, failure });
  });

  test('the later time of a variant that was measured twice counts, and no time is nothing', () => {
    const row = { ...measured(8, 0), collective: 'all_reduce', algorithm: 'ring', protocol: 'll' } as const;
    const rows = [
      { ...row, bytes: 16, timeUs: 5 },
      row,
      { ...row, bytes: 16, timeUs: 4 },
      { ...row, channels: 4, timeUs: 9 },
    ];
    const key = JSON.stringify({
      device: 'host',
      ranks: 2,
      topology: null,
      processor: null,
      cores: 2,
      gpu: null,
      computeCapability: null,
      driver: null,
    });
    expect(tableOfMeasured({ rows, key, measuredAt: new Date(0), version: '1' })).toMatchObject({
      measuredAt: '1970-01-01T00:00:00.000Z',
      collectives: [
        {
          collective: 'allReduce',
          variants: [
            {
              channels: 2,
              times: [
                [8, 0.001],
                [16, 4],
              ],
            },
            { channels: 4, times: [[8, 9]] },
          ],
        },
      ],
    });
  });
});

const refused = async (map: RankMap) => {
  const failure = await rig()
    .reporter.prepare(map)
    .then(() => null, failureOf);
  return failure?.type === 'usage' ? `${failure.message}; ${failure.remedy}` : failure;
};

describe('where it is measured', () => {
  test('the reporter refuses one rank, and accepts several hosts', async () => {
    expect(await refused(mapOn(4, 'a', 'b'))).toBeNull();
    expect(await refused(mapOn(1, 'a'))).toBe('one rank has nobody to talk to; give at least two: -n 2');
    expect(await refused(mapOn(2, 'a'))).toBeNull();
  });

  test.each([
    [['localhost'], true],
    [['node1'], false],
    [['node1', 'node2'], true],
  ])('jobs on %j look for their table on this machine: %s', async (hosts, isHere) => {
    const { reporter, stored, inner, say } = rig();
    await reporter.prepare(mapOn(2, ...hosts));
    reporter.event(planned);
    await say([head, measured(8, 2)]);
    await reporter.result(okay);
    expect([inner.prepared, stored]).toMatchObject([1, [[[[8, 2]], '/f', isHere]]]);
  });
});

describe('the command line', () => {
  const usual =
    '--collectives all_reduce,all_gather,reduce_scatter,broadcast,reduce,alltoall,gather,scatter,sendrecv --begin 8 --end 0 --factor 4 --rounds 7';

  test.each<[string[], string, RegExp | null]>([
    [['-n', '2'], `${usual} --device auto`, /^variants device host: all_reduce [1-9][0-9]*, all_gather /mu],
    [
      [
        '-n',
        '2',
        '--device',
        'host',
        '--collective',
        'all_reduce',
        '-b',
        '4',
        '-e',
        '1M',
        '-f',
        '2',
        '--iters',
        '3',
        '--rounds',
        '2',
      ],
      '--collectives all_reduce --begin 4 --end 1048576 --factor 2 --iters 3 --rounds 2 --device host',
      /^variants device host: all_reduce [1-9][0-9]*$/mu,
    ],
    [['-n', '1'], `${usual} --device auto`, null],
    [['-n', '2', '-H', 'elsewhere:2'], `${usual} --device auto`, null],
  ])('%j would measure', async (argv, words, variants) => {
    vi.stubEnv('XDG_CONFIG_HOME', '/nonexistent');
    const { status, stdout } = await captured(() => tune(['--dry-run', ...argv]));
    expect([status, stdout.split('\n')[0]?.split(' variants ')[1]]).toEqual([0, words]);
    if (variants === null) expect(stdout).not.toContain('variants device');
    else expect(stdout).toMatch(variants);
  });

  test.each([
    [['x'], '"x" after tune has no meaning; write: ncclrun tune [options]'],
    [['-b', '0'], '-b 0; a variant takes at least one byte'],
    [['-b', '8', '-e', '4'], '-e 4 is less than -b 8; sizes go from -b up to -e'],
    [['--collective', 'x'], 'no collective is called x; '],
  ])('%j is refused', async (argv, message) => {
    vi.stubEnv('XDG_CONFIG_HOME', '/nonexistent');
    expect(await refusal(() => tune(argv))).toContain(message);
  });

  test('--json prints a document of a refused command line too', async () => {
    vi.stubEnv('XDG_CONFIG_HOME', '/nonexistent');
    let status = 0;
    const { stdout } = await captured(async () => {
      await tune(['--json', '-b', '0']).catch(() => (status = 2));
      return status;
    });
    expect([status, JSON.parse(stdout)]).toMatchObject([2, { ok: false, reason: 'usage', exitCode: 2, rows: [] }]);
  });
});

/** The file's GPUs are those that NVML names too, so this machine's own GPUs would decide. */
const ownGpus = gpusHere() > 0 ? 'this machine has GPUs of its own' : null;
const dryRun = 'tune --dry-run with a topology file';
describeIf(
  ownGpus,
  dryRun,
  () => {
    test.each([
      [undefined, 'cuda'],
      ['0', 'host'],
      ['', 'host'],
    ])('CUDA_VISIBLE_DEVICES=%j makes two ranks measure device %s', async (visible, device) => {
      vi.stubEnv('XDG_CONFIG_HOME', '/nonexistent');
      vi.stubEnv('NCCL_TOPO_FILE', join(import.meta.dirname, 'fixtures/superchips.xml'));
      vi.stubEnv('CUDA_VISIBLE_DEVICES', visible);
      const { stdout } = await captured(() => tune(['--dry-run', '-n', '2']));
      expect(stdout).toContain(`\nvariants device ${device}: all_reduce `);
    });
  },
  true,
);
