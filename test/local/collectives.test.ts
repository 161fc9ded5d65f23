/** The TypeScript interface and the measuring command on this machine, through the whole way. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { collectives } from '../../launcher/cli/command-table.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

describe('examples', () => {
  const examples = readdirSync(join(repository, 'examples')).filter((name) => name.endsWith('.ts'));
  it.each(examples)('the example %s runs without an error', async (name) => {
    const { status, stdout, stderr } = await Command.run(['-n', '4', join(repository, 'examples', name)]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toBe('');
  });
});

describe('a communicator of all ranks', () => {
  it('the communicator reduces, sends, receives and passes barriers', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '4', ...steering.options, steering.program]);
    const ranks = await steering.ranks(4);
    const greetings = await Promise.all(ranks.map((rank) => rank.init()));
    expect(greetings.map((text) => text.split(' ').slice(0, 2).join(' '))).toEqual([
      '0/4 0/4',
      '1/4 1/4',
      '2/4 2/4',
      '3/4 3/4',
    ]);
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(rank.rank, 0.25)))).toEqual(ranks.map(() => [6, 1]));
    const received = ranks[3]?.receive(1, 3);
    await ranks[1]?.tell({ do: 'send', to: 3, values: [1, 2, 3] });
    expect(await received).toEqual([1, 2, 3]);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'barrier' })));
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });

  it('waiting ranks fail within a second and name the rank that died', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '3', '--grace', '20', ...steering.options, steering.program]);
    const ranks = await steering.ranks(3);
    await Promise.all(ranks.map((rank) => rank.init()));
    // They are to survive the launcher's SIGTERM long enough to say what their engine told them.
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'ignore', signals: ['SIGTERM', 'SIGINT'] })));
    const waiting = Promise.allSettled([ranks[0]?.allReduce(1), ranks[2]?.allReduce(1)]);
    const started = performance.now();
    await ranks[1]?.kill('SIGKILL');
    const outcomes = await waiting;
    expect(performance.now() - started).toBeLessThan(1000);
    for (const outcome of outcomes) {
      expect(outcome.status).toBe('rejected');
      if (outcome.status === 'rejected') expect(String(outcome.reason)).toMatch(/rank 1\b/);
    }
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(137);
  });

  it('ncclCommInitRank fails on all ranks and names the rank that exits without joining', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--json', '-n', '3', '--grace', '20', ...steering.options, steering.program]);
    const ranks = await steering.ranks(3);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'ignore', signals: ['SIGTERM', 'SIGINT'] })));
    const waiting = Promise.allSettled([ranks[0]?.init(), ranks[1]?.init()]);
    const started = performance.now();
    await ranks[2]?.exit(0);
    const outcomes = await waiting;
    expect(performance.now() - started).toBeLessThan(1500);
    for (const outcome of outcomes) {
      expect(outcome.status).toBe('rejected');
      if (outcome.status === 'rejected') expect(String(outcome.reason)).toMatch(/rank 2\b/);
    }
    for (const rank of ranks) rank.tell({ do: 'exit', code: 1 }).catch(() => {});
    const { status, stderr } = await command.outcome;
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/rank 2\b/);
  });

  it('an abort reaches the other rank', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
    const ranks = await steering.ranks(2);
    await Promise.all(ranks.map((rank) => rank.init()));
    const waiting = ranks[0]?.allReduce(1) ?? Promise.resolve([]);
    const refused = expect(waiting).rejects.toThrow(/rank 1\b/);
    await ranks[1]?.tell({ do: 'abort' });
    await refused;
    await ranks[0]?.exit(0);
    await ranks[1]?.exit(0);
    expect((await command.outcome).status).toBe(0);
  });
});

const operators = ['sum', 'prod', 'max', 'min', 'avg', 'mulsum'];

describe('perf', () => {
  const measure = [
    'perf',
    'all_reduce',
    '--device',
    'host',
    '-n',
    '4',
    '-b',
    '8',
    '-e',
    '1M',
    '-f',
    '8',
    '--iters',
    '5',
    '--check',
  ];

  it('ncclrun perf --json prints a row without wrong elements for each size', async () => {
    const { status, stdout } = await Command.run([...measure, '--json']);
    expect(status).toBe(0);
    const document: { rows: Record<string, unknown>[] } = JSON.parse(stdout);
    expect(document).toMatchObject({ collective: 'all_reduce', device: 'host', ranks: 4, hosts: 1 });
    expect(document.rows.map((row) => [row['bytes'], row['inPlace']])).toEqual(
      [8, 64, 512, 4096, 32_768, 262_144].flatMap((bytes) => [
        [bytes, false],
        [bytes, true],
      ]),
    );
    for (const row of document.rows) {
      expect(row).toMatchObject({ count: Number(row['bytes']) / 4, type: 'float', op: 'sum', root: -1, wrong: 0 });
      expect(Number(row['timeUs'])).toBeGreaterThan(0);
      expect(Number(row['busbw'])).toBeCloseTo(Number(row['algbw']) * 1.5, 1);
    }
  });

  it.each(collectives)('ncclrun perf measures %s without a wrong element', async (collective) => {
    const sizes = ['-b', '0', '-e', '100003', '-f', '313'];
    const repeats = ['-r', '1', '--iters', '2', '--warmup', '1', '--check', '--json'];
    const argv = ['perf', collective, '--device', 'host', '-n', '3', ...sizes, '-d', 'all', '-o', 'all', ...repeats];
    const { status, stdout, stderr } = await Command.run(argv);
    const { rows }: { rows: Record<string, unknown>[] } = JSON.parse(stdout);
    expect({ status, stderr, wrong: rows.filter((row) => row['wrong'] !== 0) }).toEqual({
      status: 0,
      stderr: '',
      wrong: [],
    });
    const reduces = collective.includes('reduce');
    expect(new Set(rows.map((row) => row['op']))).toEqual(new Set(reduces ? operators : ['none']));
    expect(new Set(rows.map((row) => row['type'])).size).toBe(12);
    expect(new Set(rows.map((row) => row['inPlace'])).size).toBe(collective === 'sendrecv' ? 1 : 2);
    const hasRoot = ['broadcast', 'reduce', 'gather', 'scatter'].includes(collective);
    expect(new Set(rows.map((row) => row['root']))).toEqual(new Set([hasRoot ? 1 : -1]));
  });

  it('ncclrun perf selects the host device where GPUs are missing, and --device cuda then fails', async () => {
    // CUDA hides all GPUs from who asks for none.
    const argv = ['perf', 'all_reduce', '-n', '2', '-x', 'CUDA_VISIBLE_DEVICES=', '-e', '8', '--json'];
    const { status, stdout } = await Command.run(argv);
    const document: { device: string } = JSON.parse(stdout);
    expect({ status, device: document.device }).toEqual({ status: 0, device: 'host' });
    const { status: refused, stderr } = await Command.run([...argv, '--device', 'cuda']);
    expect(refused).toBe(1);
    expect(stderr).toMatch(/ncclrun-perf: .*; without GPUs: --device host/);
  });

  it('ncclrun perf rejects a root that is not a rank', async () => {
    const { status, stderr } = await Command.run(['perf', 'reduce', '-n', '2', '-r', '2', '-e', '8']);
    expect(status, stderr).toBe(2);
    expect(stderr).toContain('the root is 2; there are ranks 0 to 1');
  });

  it('ncclrun perf prints a table by default', async () => {
    const { status, stdout } = await Command.run(measure);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^\s+262144\s+65536\s+float\s+sum\s+-1\s/m);
  });
});
