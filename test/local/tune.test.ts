/** `ncclrun tune` as a user types it, and the jobs after it: what they take shows in the bytes on every connection. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOST_THREADS } from '../../control/planner/device/host-constants.ts';
import { parseTable, printTable } from '../../control/planner/measured/table.ts';
import type { MeasuredVariant, Table } from '../../control/planner/measured/table.ts';
import { Command } from '../rig/command.ts';
import type { Outcome } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { parseEdges, ringsOf } from '../rig/edges.ts';

const RANKS = '4';
const BYTES = 1024;
const directory = mkdtempSync(join(tmpdir(), 'ncclrun-tune-'));
afterAll(() => rmSync(directory, { recursive: true }));
const tablesIn = (cache: string): string => join(directory, cache, 'ncclrun/tuning');

function run(cache: string, words: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return Command.run(words, { environment: { XDG_CACHE_HOME: join(directory, cache), ...environment } });
}

/** Connections that the job sent bytes over. */
function used({ stdout }: Outcome): number {
  return (parseEdges(stdout).get(BYTES) ?? []).filter(({ sends, bytes }) => sends && bytes > 0).length;
}

/** Few sizes, each variant a moment. */
const little = [
  '--device',
  'host',
  '-b',
  '64',
  '-e',
  '16K',
  '-f',
  '16',
  '--iters',
  '10',
  '--rounds',
  '2',
  '--max-spread',
  '100000',
  '--max-load',
  '100',
];
const sizes = [64, 1024, 16_384];
/** Microseconds that nothing reaches. */
const fast = sizes.map((bytes): [number, number] => [bytes, 0.001]);

const allReduceVariants = [
  'directOneShot ll 1',
  'directOneShot simple 1',
  'directTwoShot ll 1',
  'directTwoShot simple 1',
  'ring ll 1',
  'ring ll 2',
  'ring simple 1',
  'ring simple 2',
  'tree ll 1',
  'tree simple 1',
];

function nameOf({ algorithm, protocol, channels }: MeasuredVariant): string {
  return `${algorithm} ${protocol} ${channels}`;
}

const result = v.object({
  schemaVersion: v.literal(1),
  device: v.literal('host'),
  ranks: v.number(),
  file: v.string(),
  rows: v.array(
    v.object({
      collective: v.string(),
      bytes: v.number(),
      algorithm: v.string(),
      protocol: v.string(),
      channels: v.number(),
      timeUs: v.number(),
      planned: v.boolean(),
    }),
  ),
  ok: v.literal(true),
});

const loadResult = v.object({
  file: v.null(),
  load: v.array(v.object({ host: v.string(), processors: v.number(), others: v.number() })),
});

describe('ncclrun tune', () => {
  let program = '';
  let file = '';
  let table: Table;
  beforeAll(async () => {
    program = await compileWithEngine('test/rig/programs/edges.c', directory);
    const { status, stdout, stderr } = await run('cache', ['tune', '-n', RANKS, ...little, '--json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const measured = v.parse(result, JSON.parse(stdout));
    ({ file } = measured);
    table = parseTable(readFileSync(file, 'utf8'));
    for (const collective of ['all_reduce', 'sendrecv']) {
      const seen = new Set(measured.rows.filter((row) => row.collective === collective).map(({ bytes }) => bytes));
      expect([...seen]).toEqual(sizes);
      for (const bytes of sizes) {
        const rows = measured.rows.filter((row) => row.collective === collective && row.bytes === bytes);
        expect(rows.filter(({ planned }) => planned)).toHaveLength(1);
        expect(rows.every(({ timeUs }) => timeUs > 0)).toBe(true);
      }
    }
  });

  it('ncclrun tune stores the times of every variant in a file of mode 0600', () => {
    expect(readdirSync(tablesIn('cache'))).toHaveLength(1);
    expect(file).toMatch(new RegExp(`^${tablesIn('cache')}/host-4-[0-9a-f]{16}\\.json$`, 'u'));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(table.key).toMatchObject({ device: 'host', ranks: 4, gpu: null, driver: null });
    expect(table.collectives.map(({ collective }) => collective)).toEqual([
      'allReduce',
      'allGather',
      'reduceScatter',
      'broadcast',
      'reduce',
      'allToAll',
      'gather',
      'scatter',
      'sendRecv',
    ]);
    // A variant that was far behind at every size is not there: which ones, the machine's load decides.
    const names = table.collectives[0]?.variants.map(nameOf) ?? [];
    expect(names.length).toBeGreaterThan(0);
    expect(allReduceVariants).toEqual(expect.arrayContaining(names));
  });

  it('ncclrun tune prints the fastest variant of each size and the path of the table', async () => {
    const own = join(directory, 'own.json');
    const words = ['tune', '-n', '2', ...little, '--collective', 'broadcast,alltoall', '--output', own];
    const { status, stdout, stderr } = await run('elsewhere', words);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^# variants on 2 ranks, 1 host, device host: /u);
    expect(
      lines.filter((line) => /^ broadcast +[0-9]+ {2}[a-zA-Z]+ (ll|simple) [12]x64 +[0-9.]+ /u.test(line)),
    ).toHaveLength(3);
    expect(lines.filter((line) => line.startsWith('# broadcast: what is planned was as fast at'))).toHaveLength(1);
    expect(lines.at(-1)).toContain(`# stored in ${own}; as ${tablesIn('elsewhere')}/host-2-`);
    expect(parseTable(readFileSync(own, 'utf8')).collectives).toHaveLength(2);
    expect(() => readdirSync(tablesIn('elsewhere'))).toThrow('ENOENT');
  });

  async function job(cache: string, variables: NodeJS.ProcessEnv = {}): Promise<Outcome> {
    return run(cache, ['-n', RANKS, '--verbose', '--tag-output=none', program, String(BYTES)], variables);
  }

  it('a job uses the variants that the table measured as fastest', async () => {
    const ring: MeasuredVariant = {
      algorithm: 'ring',
      protocol: 'simple',
      channels: 1,
      threads: HOST_THREADS,
      times: fast,
    };
    const rings = table.collectives.map((one) =>
      one.collective === 'allReduce' ? { ...one, variants: [ring, ...one.variants] } : one,
    );
    writeFileSync(file, printTable({ ...table, collectives: rings }));
    const tuned = await job('cache');
    expect(tuned.status).toBe(0);
    expect(tuned.stderr).toContain(`localhost: the variants of 4 ranks are those of ${file}`);
    expect(ringsOf(parseEdges(tuned.stdout).get(BYTES) ?? []).size).toBeGreaterThan(0);

    const plain = await job('cache', { NCCLRUN_TUNE: '0' });
    expect(plain.status).toBe(0);
    expect(plain.stderr).not.toContain(file);
    expect(used(plain)).toBe(12); // everybody to everybody

    const shown = await run('cache', ['plan', '--ranks', RANKS], { NCCLRUN_DEVICE: 'host' });
    expect(shown).toMatchObject({ status: 0, stderr: '' });
    expect(shown.stdout).toContain(`measured: ${file}`);
    expect(shown.stdout).toMatch(/^allReduce +16384 +ring /mu);
    const unused = await run('cache', ['plan', '--ranks', RANKS], { NCCLRUN_DEVICE: 'host', NCCLRUN_TUNE: '0' });
    expect(unused.stdout).not.toContain('measured');
    expect(unused.stdout).not.toMatch(/^allReduce .* ring /mu);
  });

  it('a job ignores a broken table, reports it once and continues', async () => {
    writeFileSync(file, printTable(table).slice(0, 500));
    const { status, stdout, stderr } = await job('cache');
    expect(status).toBe(0);
    expect(stdout).not.toBe('');
    const told = stderr.split('\n').filter((line) => line.includes('is ignored'));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(`the table of measured times is ignored: ${file}: no JSON`);
  });
});

describe('ncclrun tune between hosts', () => {
  const between = ['--simulate-hosts', '2', '-n', RANKS];
  const measure = [...between, ...little, '--collective', 'all_reduce'];

  it('jobs on as many hosts use the variants that were measured between hosts', async () => {
    const program = await compileWithEngine('test/rig/programs/edges.c', directory);
    const { status, stdout, stderr } = await run('between', ['tune', ...measure, '--json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { file } = v.parse(result, JSON.parse(stdout));
    const table = parseTable(readFileSync(file, 'utf8'));
    expect(table.key.between).toMatchObject({ hosts: 2, layout: '2x2', network: 'Socket', isOneMachine: true });
    const ring = { algorithm: 'ring', protocol: 'simple', channels: 1, threads: HOST_THREADS, times: fast } as const;
    writeFileSync(file, printTable({ ...table, collectives: [{ collective: 'allReduce', variants: [ring] }] }));

    const job = ['--verbose', '--tag-output=none', program, String(BYTES)];
    const tuned = await run('between', [...between, ...job]);
    expect(tuned.status).toBe(0);
    expect(tuned.stderr).toContain(`the variants of 4 ranks are those of ${file}`);
    expect(used(tuned)).toBe(4);
    const plain = await run('between', [...between, ...job], { NCCLRUN_TUNE: '0' });
    expect(used(plain)).toBe(12);
    const other = await run('between', ['--simulate-hosts', '4', '-n', RANKS, ...job]);
    expect([other.status, other.stderr.includes(file)]).toEqual([0, false]);
  });

  it('times that vary from round to round are not stored, and the command fails', async () => {
    const { status, stdout, stderr } = await run('noisy', ['tune', ...measure, '--max-spread', '0']);
    expect(status).toBe(1);
    expect(stderr).toContain('nothing is stored: the times of every size varied by more than 0 %');
    expect(stdout).not.toContain('stored in');
    expect(() => readdirSync(tablesIn('noisy'))).toThrow('ENOENT');
  });

  it('a measurement beside busy processes stores nothing, and says how much its times varied', async () => {
    const neighbours = Array.from({ length: 8 * availableParallelism() }, () =>
      spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
    );
    try {
      const { status, stdout, stderr } = await run('busy', ['tune', ...measure, '--max-spread', '5']);
      expect(status).toBe(1);
      expect(stderr).toMatch(
        /^ncclrun: nothing is stored: .*varied by more than 5 % between rounds \(median: \d+ %\)/mu,
      );
      expect(stderr).toMatch(/run it again when nothing else runs on the hosts .*--max-spread \d+$/mu);
      expect(stdout).not.toContain('stored in');
      expect(() => readdirSync(tablesIn('busy'))).toThrow('ENOENT');
    } finally {
      for (const neighbour of neighbours) neighbour.kill('SIGKILL');
    }
  });

  it('a measurement beside steady processes stores nothing, and says how much of the machine they used', async () => {
    const processors = availableParallelism();
    // Several for each processor, or the ranks, which wait by polling, would leave them little of it.
    const neighbours = Array.from({ length: 3 * processors }, () =>
      spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
    );
    try {
      const words = ['tune', ...measure.filter((word) => word !== '100' && word !== '--max-load'), '--json'];
      const { status, stdout, stderr } = await run('loaded', words);
      expect(status).toBe(1);
      expect(stderr).toMatch(
        /^ncclrun: nothing is stored: other processes used [0-9.]+ of \d+ processors of \S+ during the measurement$/mu,
      );
      expect(stderr).toMatch(/or allow more: --max-load \d+$/mu);
      const { file, load } = v.parse(loadResult, JSON.parse(stdout));
      expect(file).toBeNull();
      expect(load).toHaveLength(1); // the simulated hosts are one machine
      expect(load[0]?.processors).toBeGreaterThanOrEqual(processors);
      expect(load[0]?.others).toBeGreaterThan(processors / 10); // --max-load
      expect(() => readdirSync(tablesIn('loaded'))).toThrow('ENOENT');
      const allowed = await run('loaded', ['tune', ...measure]);
      expect(allowed.status).toBe(0);
      expect(allowed.stdout).toMatch(/^# other processes used [0-9.]+ of \d+ processors/mu);
    } finally {
      for (const neighbour of neighbours) neighbour.kill('SIGKILL');
    }
  });

  it('a measurement that the user interrupts keeps what was stored before', async () => {
    const first = await run('kept', ['tune', ...measure]);
    expect(first.status).toBe(0);
    const [name = ''] = readdirSync(tablesIn('kept'));
    const before = readFileSync(join(tablesIn('kept'), name), 'utf8');
    const environment = { XDG_CACHE_HOME: join(directory, 'kept') };
    await using command = Command.start(['tune', ...measure, '--rounds', '50', '--iters', '1000'], { environment });
    await command.line('stdout', /^ all_reduce/u);
    command.signal('SIGINT');
    expect((await command.outcome).status).toBe(130);
    expect(readdirSync(tablesIn('kept'))).toEqual([name]);
    expect(readFileSync(join(tablesIn('kept'), name), 'utf8')).toBe(before);
  });
});

describe('commands that measure nothing', () => {
  it('--dry-run prints the number of variants per collective and measures nothing', async () => {
    const { status, stdout, stderr } = await run('nothing', ['tune', '-n', '3', '--device', 'host', '--dry-run']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n').at(-2)).toBe(
      'variants device host: all_reduce 10, all_gather 6, reduce_scatter 6, broadcast 8, reduce 8, alltoall 2, gather 2, scatter 2, sendrecv 1',
    );
    expect(() => readdirSync(tablesIn('nothing'))).toThrow('ENOENT');
  });

  const refused: readonly (readonly [string, readonly string[], string])[] = [
    ['one rank', ['-n', '1'], 'one rank has nobody to talk to'],
    ['a spread of no number', ['-n', '2', '--max-spread', 'much'], '--max-spread is "much"'],
    ['no bytes', ['-n', '2', '-b', '0'], '-b 0'],
    ['decreasing sizes', ['-n', '2', '-b', '1M', '-e', '1K'], '-e 1024 is less than -b 1048576'],
    ['an unknown collective', ['-n', '2', '--collective', 'all_redeuce'], 'did you mean all_reduce?'],
    ['a word', ['all_reduce'], 'has no meaning'],
    ['a plan', ['-n', '2', '--plan', 'plan.json'], 'unknown option --plan'],
    ['no rounds', ['-n', '2', '--rounds', '0'], '--rounds is "0"'],
  ];
  it.each(refused)('ncclrun tune rejects %s', async (_, words, sentence) => {
    const { status, stdout, stderr } = await run('nothing', ['tune', ...words]);
    expect(stdout).toBe('');
    expect(stderr).toContain(sentence);
    expect(status).toBe(2);
  });

  it('ncclrun tune names a table that it cannot write', async () => {
    const words = ['tune', '-n', '2', ...little, '--collective', 'gather', '--output', '/proc/none/table.json'];
    const { status, stderr } = await run('nothing', words);
    expect(stderr).toContain('the table /proc/none/table.json cannot be written');
    expect(status).toBe(2);
    const refused = await run('nothing', ['tune', '-n', '1', '--json']);
    expect(JSON.parse(refused.stdout)).toMatchObject({ ok: false, reason: 'usage', exitCode: 2, rows: [], file: null });
  });

  it('a job without a table says nothing about tables', async () => {
    const { status, stderr } = await run('nothing', [
      'perf',
      'broadcast',
      '-n',
      '2',
      '--device',
      'host',
      '-e',
      '8',
      '--verbose',
    ]);
    expect(status).toBe(0);
    expect(stderr).not.toMatch(/table|variants/u);
  });
});
