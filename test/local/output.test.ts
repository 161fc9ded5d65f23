/** What the ranks write arrives whole, in order, all of it. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile } from '../rig/compile.ts';
import { residentBytes } from '../rig/processes.ts';
import { Steering } from '../rig/steering.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-output-'));
  for (const name of ['lines_write', 'lines_check']) await compile(`bench/programs/${name}.c`, directory);
});
afterAll(() => rm(directory, { recursive: true }));

it('each line has a rank tag if there are several ranks', async () => {
  expect((await Command.run(['-n', '1', 'echo', 'one'])).stdout).toBe('one\n');
  const { stdout } = await Command.run(['-n', '2', 'echo', 'two']);
  expect(stdout.split('\n').toSorted()).toEqual(['', '[0] two', '[1] two']);
  const tagged = await Command.result(['-n', '2', '--tag-output=host', 'echo', 'three']);
  expect(tagged.outcome.stderr).toContain(`[1@${tagged.hosts[0]?.name ?? ''}] three\n`);
});

it('stdout and stderr stay separate', async () => {
  const { stdout, stderr } = await Command.run(['-n', '1', 'sh', '-c', 'echo out; echo err >&2']);
  expect({ stdout, stderr }).toEqual({ stdout: 'out\n', stderr: 'err\n' });
});

it('lines of two ranks never mix when they arrive in pieces', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const [first, second] = await steering.ranks(2);
  await first?.print('be');
  await second?.print('one whole line\n');
  await command.line('stdout', /one whole line/);
  await first?.print('gin\nno newline at the end');
  await first?.exit(0);
  await second?.exit(0);
  const { stdout } = await command.outcome;
  expect(stdout.split('\n').toSorted()).toEqual(['', '[0] begin', '[0] no newline at the end', '[1] one whole line']);
});

it('a line appears as soon as the rank writes it', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const rank = await steering.rank(1);
  await rank.print('now\n');
  expect(await command.line('stdout', /now/)).toBe('[1] now');
});

it('arbitrary bytes and lines longer than any buffer arrive unchanged', async () => {
  const script = 'head -c 3000000 /dev/zero | tr "\\0" x; printf "\\377\\376\\n"';
  const { stdout } = await promisify(execFile)(join(repository, 'bin/ncclrun'), ['-n', '1', 'sh', '-c', script], {
    encoding: 'buffer',
    maxBuffer: 1 << 24,
  });
  expect(stdout.length).toBe(3_000_003);
  expect([...stdout.subarray(-3)]).toEqual([0xff, 0xfe, 0x0a]);
});

const repeats = Number(process.env['NCCLRUN_TEST_REPEAT'] ?? 1) - 1;

it('80 MB of lines from 4 ranks arrive complete', { repeats }, async () => {
  const script = '"$1" -n 4 "$2/lines_write" 20000000 | "$2/lines_check" 4 20000000';
  const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun'), directory];
  const { status, stdout } = await Command.run(argv, { program: '/bin/sh' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'ok 800000\n' });
});

it('the launcher waits for a slow reader with bounded memory', async () => {
  // The reader takes nothing until the writers have long filled every buffer on the way; then everything arrives.
  await using command = Command.start(['-n', '2', join(directory, 'lines_write'), '30000000'], { stdin: 'ignore' });
  const { stdout } = command.process;
  stdout?.pause();
  const deadline = performance.now() + 1500;
  while (performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
  expect(residentBytes(command.pid)).toBeLessThan(200e6);
  stdout?.resume();
  const outcome = await command.outcome;
  expect(outcome.status).toBe(0);
  expect(outcome.stdout.split('\n').length).toBe(600_001);
});

it('the launcher ends silently when its reader exits', async () => {
  const script = '"$1" -n 2 yes 2>"$2/stderr" | head -n 1; cat "$2/stderr"';
  const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun'), directory];
  await using command = Command.start(argv, { program: '/bin/sh' });
  const { stdout } = await command.outcome;
  expect(stdout).toMatch(/^\[[01]\] y\n$/);
  await command.nothingLeft(5000);
});

const stamp = String.raw`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}`;

it('--timestamp-output puts the time of writing before each line', async () => {
  const one = await Command.run(['-n', '1', '--timestamp-output', 'echo', 'one']);
  expect(one.stdout).toMatch(new RegExp(`^${stamp} one\n$`, 'u'));
  const two = await Command.run(['-n', '2', '--timestamp-output', 'echo', 'two']);
  expect(two.stdout).toMatch(new RegExp(`^(${stamp} \\[[01]\\] two\n){2}$`, 'u'));
});

it('the timestamp is the time of writing even if the reader is slow', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '1', '--timestamp-output', ...steering.options, steering.program], {
    environment: { TZ: 'UTC' },
  });
  const rank = await steering.rank(0);
  command.process.stdout?.pause();
  const before = Date.now();
  await rank.print('now\n');
  const written = Date.now();
  const deadline = performance.now() + 300;
  while (performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
  command.process.stdout?.resume();
  const [, text = ''] = /^(.*) now$/u.exec(await command.line('stdout', /now/)) ?? [];
  const time = Date.parse(`${text.replace(' ', 'T')}Z`);
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThan(written + 250);
});

it('--output-ranks shows only the selected ranks', async () => {
  const { stdout } = await Command.run(['-n', '4', '--output-ranks', '0,2-3', 'sh', '-c', 'echo $RANK']);
  expect(stdout.split('\n').toSorted()).toEqual(['', '[0] 0', '[2] 2', '[3] 3']);
  const beyond = await Command.run(['-n', '2', '--output-ranks', '1-2', 'true']);
  expect(beyond.status).toBe(2);
  expect(beyond.stderr).toContain('--output-ranks names rank 2; this job has ranks 0 to 1');
});

it('--merge-stderr-to-stdout keeps the order of writing', async () => {
  const script = 'for i in 1 2 3; do echo out$i; echo err$i >&2; done';
  const { stdout, stderr } = await Command.run(['-n', '1', '--merge-stderr-to-stdout', 'sh', '-c', script]);
  expect({ stdout, stderr }).toEqual({ stdout: 'out1\nerr1\nout2\nerr2\nout3\nerr3\n', stderr: '' });
});

const read = (name: string) => readFile(join(directory, name), 'utf8');

describe('output files', () => {
  const script = 'echo out; echo err >&2';

  it('--output dir= writes a file per rank and stream beside the terminal output', async () => {
    const { stdout } = await Command.run(['-n', '2', '--output', 'dir=each/of', 'sh', '-c', script], { directory });
    expect(stdout.split('\n').toSorted()).toEqual(['', '[0] out', '[1] out']);
    expect((await readdir(join(directory, 'each/of'))).toSorted()).toEqual([
      'rank.0.stderr',
      'rank.0.stdout',
      'rank.1.stderr',
      'rank.1.stdout',
    ]);
    expect([await read('each/of/rank.1.stdout'), await read('each/of/rank.0.stderr')]).toEqual(['out\n', 'err\n']);
  });

  it('--output file= writes files by pattern, and nocopy suppresses the terminal output', async () => {
    const options = ['--output', 'file=%n.%t:nocopy', '--output', 'file=100%%.%h.%r'];
    const { stdout, stderr } = await Command.run(['-n', '2', ...options, 'sh', '-c', script], { directory });
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' });
    expect((await read('2.stdout')).split('\n').toSorted()).toEqual(['', '[0] out', '[1] out']);
    expect((await read('100%.localhost.1')).split('\n').toSorted()).toEqual(['', 'err', 'out']);
  });

  it('--output-filename creates the directory layout of Open MPI', async () => {
    const options = ['--output-filename', 'tree', '--output', 'tag,timestamp'];
    const { stdout } = await Command.run(['-n', '11', ...options, 'sh', '-c', script], { directory });
    expect(stdout).toMatch(new RegExp(`^(${stamp} \\[\\d+\\] out\n){11}$`, 'u'));
    expect(await read('tree/1/rank.03/stdout')).toMatch(new RegExp(`^${stamp} \\[3\\] out\n$`, 'u'));
    expect((await readdir(join(directory, 'tree/1'))).length).toBe(11);
  });

  it('the launcher truncates an existing output file at the start', async () => {
    await writeFile(join(directory, 'old'), 'of another job\n');
    await Command.run(['-n', '1', '--output', 'file=old', 'true'], { directory });
    expect(await read('old')).toBe('');
  });

  it('a job may have more output files than descriptors', async () => {
    const script = 'for i in 1 2 3; do echo $i; echo $i >&2; done';
    const options = ['-n', '150', '--oversubscribe', '--output', 'dir=many:nocopy'];
    expect((await Command.run([...options, 'sh', '-c', script], { directory })).status).toBe(0);
    const all = await Promise.all((await readdir(join(directory, 'many'))).map((name) => read(`many/${name}`)));
    expect(all).toEqual(Array.from({ length: 300 }, () => '1\n2\n3\n'));
  });

  it.each([
    ['dir=/proc/no/where', '/proc/no/where/rank.0.stdout cannot be written: ENOENT'],
    ['file=.', '. cannot be written: EISDIR'],
    ['file=x.%z', '"%z" has no meaning'],
    ['file=', 'names no file'],
    ['fil=x', '--output is "fil=x"'],
  ])('the launcher rejects --output %s before anything starts', async (output, error) => {
    const marker = join(directory, 'started');
    const { status, stderr } = await Command.run(['-n', '2', '--output', output, 'touch', marker], { directory });
    expect(status).toBe(2);
    expect(stderr).toContain(error);
    await expect(readFile(marker)).rejects.toThrow('ENOENT');
  });

  it('an output file on a full disk ends the job with 125 and is named', async () => {
    const program = ['sh', '-c', 'echo x; exec tail -f /dev/null'];
    const { status, stderr } = await Command.run(['-n', '1', '--output', 'file=/dev/full', ...program], { directory });
    expect(status).toBe(125);
    expect(stderr).toBe(
      'ncclrun: cannot write the output: /dev/full: ENOSPC: no space left on device, write\n' +
        '  next: make room, or send the output elsewhere\n' +
        'ncclrun: 1 rank was ended because of it: 0\n',
    );
  });

  it('the launcher stops writing to a full disk while the ranks keep writing', async () => {
    const script = '"$1" -n 2 --grace 1 --output file=/dev/full sh -c "trap : TERM; yes" | tail -n 1';
    const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun')];
    const { stderr } = await Command.run(argv, { program: 'sh' });
    expect(stderr).toContain('cannot write the output: /dev/full: ENOSPC');
    expect(stderr).not.toContain('garbage');
  });
});

it('--fold shows equal lines of several ranks once', async () => {
  const script = 'echo start; if [ $RANK = 2 ]; then echo loss nan; else echo loss 2.31; fi; echo warn >&2';
  const { stdout, stderr } = await Command.run(['-n', '5', '--fold', 'sh', '-c', script]);
  const lines = stdout.split('\n');
  const readers = lines.flatMap((line) => /^\[([0-9,-]+)\] loss 2\.31$/u.exec(line)?.[1] ?? []);
  expect(lines).toContain('[2] loss nan');
  // How many lines it takes depends on when the ranks write; together they name every rank once.
  expect(readers.join(',')).toMatch(/^[0-9,-]+$/u);
  expect(stderr).toMatch(/^(\[[0-9,-]+\] warn\n)+$/u);
  const alone = await Command.run(['-n', '2', '--fold', '--tag-output=none', 'true']);
  expect(alone.status).toBe(2);
});
