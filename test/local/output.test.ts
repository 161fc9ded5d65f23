/** What the ranks write arrives whole, in order, all of it. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

it('bears the rank before each line where there are several, else nothing', async () => {
  expect((await Command.run(['-n', '1', 'echo', 'one'])).stdout).toBe('one\n');
  const { stdout } = await Command.run(['-n', '2', 'echo', 'two']);
  expect(stdout.split('\n').toSorted()).toEqual(['', '[0] two', '[1] two']);
  const tagged = await Command.result(['-n', '2', '--tag-output=host', 'echo', 'three']);
  expect(tagged.outcome.stderr).toContain(`[1@${tagged.hosts[0]?.name ?? ''}] three\n`);
});

it('keeps the two streams apart', async () => {
  const { stdout, stderr } = await Command.run(['-n', '1', 'sh', '-c', 'echo out; echo err >&2']);
  expect({ stdout, stderr }).toEqual({ stdout: 'out\n', stderr: 'err\n' });
});

it('never mixes lines, though they come in pieces', async () => {
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

it('shows a line as soon as it is written', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const rank = await steering.rank(1);
  await rank.print('now\n');
  expect(await command.line('stdout', /now/)).toBe('[1] now');
});

it('carries any bytes, and lines longer than every buffer', async () => {
  const script = 'head -c 3000000 /dev/zero | tr "\\0" x; printf "\\377\\376\\n"';
  const { stdout } = await promisify(execFile)(join(repository, 'bin/ncclrun'), ['-n', '1', 'sh', '-c', script], {
    encoding: 'buffer',
    maxBuffer: 1 << 24,
  });
  expect(stdout.length).toBe(3_000_003);
  expect([...stdout.subarray(-3)]).toEqual([0xff, 0xfe, 0x0a]);
});

it('loses and cuts no line of 80 MB from 4 ranks', async () => {
  const script = '"$1" -n 4 "$2/lines_write" 20000000 | "$2/lines_check" 4 20000000';
  const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun'), directory];
  const { status, stdout } = await Command.run(argv, { program: '/bin/sh' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'ok 800000\n' });
});

it('waits for a slow reader instead of filling memory', async () => {
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

it('ends quietly when its reader leaves', async () => {
  const script = '"$1" -n 2 yes 2>"$2/stderr" | head -n 1; cat "$2/stderr"';
  const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun'), directory];
  await using command = Command.start(argv, { program: '/bin/sh' });
  const { stdout } = await command.outcome;
  expect(stdout).toMatch(/^\[[01]\] y\n$/);
  await command.nothingLeft(5000);
});
