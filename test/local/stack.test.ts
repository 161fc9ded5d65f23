/** `ncclrun stack`, and the stacks in verdicts about hangs, of Python programs and programs of C. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parseStackReport } from '../../launcher/jobs/stack-report.ts';
import { describeIf, findProgram } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile } from '../rig/compile.ts';
import { parseResult } from '../rig/result.ts';

const script = join(repository, 'test/rig/programs/stuck.py');
const environment = { LD_LIBRARY_PATH: join(repository, 'build') };
const SECRET = 'geheim';
/** Other versions than the system's: `NCCLRUN_TEST_PYTHONS=/opt/py39/bin/python3.9:/opt/py314/bin/python3.14`. */
const others = (process.env['NCCLRUN_TEST_PYTHONS'] ?? '').split(':').filter(Boolean);
const system = findProgram('python3');
const pythons = system === null ? others : [system, ...others];
const directory = mkdtempSync(join(tmpdir(), 'ncclrun-stack-'));

afterAll(() => rmSync(directory, { recursive: true, force: true }));

const stackOf = async (command: Command, ...words: string[]) => Command.run(['stack', String(command.pid), ...words]);

describeIf(pythons.length === 0 ? 'python3 is not installed' : null, 'of Python programs', () => {
  it.each(pythons)('the verdict about a hang names the function in which %s sleeps', async (python) => {
    const options = ['--json', '--hang-after', '0.5', '--on-hang', 'abort'];
    const { status, stdout, stderr } = await Command.run(['-n', '3', ...options, python, script], { environment });
    expect(status).toBe(124);
    expect(stderr).toMatch(
      /^ {4}rank 1, main thread: \w+ ← (?:\w+ ← )?read_shard stuck\.py:\d+ ← next_batch stuck\.py:\d+ ← train stuck\.py:\d+$/m,
    );
    const [failure] = parseResult(stdout).failures;
    if (failure?.type !== 'hang') throw new Error('the job failed otherwise');
    const { stacks } = failure.verdict;
    expect(stacks.map(({ id, ranks, thread }) => ({ id, ranks, thread }))).toEqual([
      { id: 1, ranks: '0', thread: 'main thread' },
      { id: 2, ranks: '1', thread: 'main thread' },
    ]);
    const lines = stacks[1]?.frames.flatMap((frame) =>
      frame.file === script ? [`${frame.function}:${frame.line}`] : [],
    );
    expect(lines).toEqual(['read_shard:19', 'next_batch:23', 'train:35', '<module>:40']);
    const engine = stacks[0]?.frames.find(({ module }) => basename(module ?? '') === 'libnccl.so.2');
    expect(engine?.language).toBe('native');
    expect(`${stdout}${stderr}`).not.toContain(SECRET);
  });
});

it('stack shows what ranks have in common once, and where they part', async () => {
  const program = await compile('test/rig/programs/call-tree.c', directory);
  await using command = Command.start(['-n', '2', program, ':', '-n', '1', program, 'spin']);
  for (const rank of [0, 1, 2]) await command.line('stdout', new RegExp(`\\[${rank}\\] ready`));
  const { status, stdout, stderr } = await stackOf(command);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.slice(0, 5)).toEqual([
    'main threads',
    expect.stringMatching(/^main {2}call-tree +3 {2}0-2$/),
    expect.stringMatching(/^outermost {2}call-tree +3 {2}0-2$/),
    expect.stringMatching(/^middle {2}call-tree +3 {2}0-2$/),
    expect.stringMatching(/^innermost {2}call-tree +3 {2}0-2$/),
  ]);
  expect(lines[5]).toMatch(/^waitHere {2}call-tree +2 {2}0-1$/);
  expect(lines.every((line) => line.length <= 80)).toBe(true);
});

it('stack --json has the ranks that were asked for', async () => {
  await using command = Command.start(['-n', '3', 'sh', '-c', 'echo ready; sleep 600; true']);
  for (const rank of [0, 1, 2]) await command.line('stdout', new RegExp(`\\[${rank}\\] ready`));
  const { status, stdout } = await stackOf(command, '--rank', '0,2', '--json');
  expect(status).toBe(0);
  const report = parseStackReport(Buffer.from(stdout));
  expect(report.ranks.map(({ rank, host, problem }) => ({ rank, host, problem }))).toEqual(
    [0, 2].map((rank) => ({ rank, host: 'localhost', problem: null })),
  );
  expect(report.missing).toBe('');
  // The program is read, not the shell that waits for it.
  expect(report.ranks.map(({ threads }) => threads[0]?.name)).toEqual(['sleep', 'sleep']);
});

it('stack reads the ranks of every host', async () => {
  await using command = Command.start(['--simulate-hosts', '2', '-n', '4', 'sh', '-c', 'echo ready; sleep 600; true']);
  for (const rank of [0, 1, 2, 3]) await command.line('stdout', new RegExp(`\\[${rank}\\] ready`));
  const { stdout } = await stackOf(command, '--json');
  const { ranks } = parseStackReport(Buffer.from(stdout));
  expect(ranks.map(({ rank, problem }) => ({ rank, problem }))).toEqual(
    [0, 1, 2, 3].map((rank) => ({ rank, problem: null })),
  );
  expect(new Set(ranks.map(({ host }) => host)).size).toBe(2);
});

it.each([
  [['stack'], 'stack needs one job, and has 0'],
  [['stack', 'nosuchjob'], 'no running job of yours on this machine is called "nosuchjob"'],
])('the launcher refuses %s with a sentence', async (words, sentence) => {
  const { status, stderr } = await Command.run(words);
  expect(status).toBe(2);
  expect(stderr).toContain(sentence);
});
