/** Every example, run as its first lines say. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { describeIf, findProgram } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-examples-'));
afterAll(() => rmSync(directory, { recursive: true }));

const environment = { PATH: `${join(repository, 'bin')}${delimiter}${process.env['PATH'] ?? ''}` };
const here = hostname();

/** The lines of a job that must succeed silently but for them, in order of rank. */
async function lines(argv: readonly string[]): Promise<string[]> {
  const { status, stdout, stderr } = await Command.run(argv);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd().split('\n').toSorted();
}

async function script(name: string, ...argv: readonly string[]) {
  return Command.run(argv, { program: join(repository, 'examples', name), environment, directory });
}

const noPython = findProgram('python3') === null ? 'python3 is not installed' : null;
const noCompiler = findProgram('cc') === null ? 'no C compiler (cc) is installed' : null;

describe('examples', () => {
  it('examples/README.md lists every example', () => {
    const page = readFileSync(join(repository, 'examples/README.md'), 'utf8');
    for (const name of readdirSync(join(repository, 'examples'))) {
      if (name !== 'README.md') expect(page).toContain(`](${name})`);
    }
  });

  it('hello.sh greets from every rank', async () => {
    const expected = [0, 1, 2].map((rank) => `[${rank}] hello from rank ${rank} of 3, number ${rank} of 3 on ${here}`);
    expect(await lines(['-n', '3', 'examples/hello.sh'])).toEqual(expected);
  });

  it('hello.ts greets from every rank after a barrier', async () => {
    expect(await lines(['-n', '2', 'examples/hello.ts'])).toEqual([
      '[0] all 2 are there',
      `[0] hello from rank 0 of 2, number 0 on localhost`,
      `[1] hello from rank 1 of 2, number 1 on localhost`,
    ]);
  });

  it('all-reduce.ts prints the right sum', async () => {
    expect((await lines(['-n', '4', 'examples/all-reduce.ts'])).join()).toContain('every element is 10, as it must be');
  });

  it('gpu-all-reduce.ts prints the right sum and its duration', async () => {
    const output = (await lines(['-n', '2', 'examples/gpu-all-reduce.ts'])).join('\n');
    expect(output).toMatch(/^\[0\] 2 (GPUs|ranks of the host device) summed 1048576 floats in [\d.]+ ms$/m);
    expect(output).toContain('every element is 6, as it must be');
  });

  it('ring.ts passes a word through all ranks', async () => {
    expect(await lines(['-n', '4', 'examples/ring.ts'])).toEqual([
      '[0] the word came back from rank 3 having seen ranks 0, 1, 2, 3',
    ]);
  });

  it('halo.ts computes the same result as one piece', async () => {
    expect(await lines(['-n', '3', 'examples/halo.ts'])).toEqual([
      '[0] 500 steps on 3 pieces of 100 cells: the hottest cell has 25.225 degrees',
      '[0] every cell is as in a rod of one piece',
    ]);
  });

  it('fault.ts continues without the rank that aborts', async () => {
    expect(await lines(['-n', '3', 'examples/fault.ts'])).toEqual([
      expect.stringMatching(/^\[0\] 2 ranks went on from step [45] and did all 10$/),
      expect.stringMatching(/^\[0\] rank 1 \(.*\) aborted the communicator: step 5 gave NaN$/),
      '[1] rank 1 gave up after 5 steps',
    ]);
  });

  it('train-digits.ts learns the same on any number of ranks', async () => {
    const outcomes = [];
    for (const ranks of ['1', '2', '4']) {
      const { status, stdout, stderr } = await Command.run(['-n', ranks, 'examples/train-digits.ts']);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const [, loss, right, all] = /step 400: loss (\S+)\n(?:\[0\] )?(\d+) of (\d+) new digits/.exec(stdout) ?? [];
      outcomes.push({ loss: Number(loss), right: Number(right), all: Number(all) });
    }
    const [alone, ...others] = outcomes;
    if (alone === undefined) throw new Error('no outcome');
    expect(alone.right / alone.all).toBeGreaterThan(0.9);
    for (const { loss, right } of others) {
      expect(Math.abs(loss / alone.loss - 1)).toBeLessThan(1e-6);
      expect(right).toBe(alone.right);
    }
  });

  it('hostfile-job.sh runs its job and reports status 0', async () => {
    const { status, stdout, stderr } = await script('hostfile-job.sh');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const rank of [0, 1, 2, 3]) {
      expect(stdout).toMatch(new RegExp(`^\\[${rank}@.*\\] welcome from rank ${rank} of 4`, 'm'));
    }
    expect(stdout).toMatch(/ranks 0-3/);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('the job ended with status 0 (ok)');
  });

  it('hostfile-job.sh fails with 2 when the hostfile does not exist', async () => {
    const { status, stderr } = await script('hostfile-job.sh', 'no-such-file');
    expect(status).toBe(2);
    expect(stderr).toContain('no-such-file');
  });
});

describeIf(noPython, 'examples in Python', () => {
  it('hello.py greets from every rank', async () => {
    const expected = [0, 1].map((rank) => `[${rank}] hello from rank ${rank} of 2, number ${rank} of 2 on ${here}`);
    expect(await lines(['-n', '2', 'examples/hello.py'])).toEqual(expected);
  });

  it('train.py reaches the expected loss', async () => {
    const output = await lines(['-n', '3', 'examples/train.py', '--steps', '100']);
    expect(output.join('\n')).toMatch(/^\[0\] step 100: loss 0\.01\d*, y = (2\.9\d|3\.0\d)x -(0\.9\d|1\.0\d)$/m);
  });

  it('mpmd.sh runs three programs in one job', async () => {
    const { status, stdout, stderr } = await script('mpmd.sh');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const greetings = stdout.trimEnd().split('\n').toSorted();
    expect(greetings.map((line) => line.replace(/, number.*/, ''))).toEqual([
      '[0] lead from rank 0 of 4',
      '[1] work from rank 1 of 4',
      '[2] work from rank 2 of 4',
      '[3] hello from rank 3 of 4',
    ]);
  });
});

describeIf(noCompiler, 'examples in C', () => {
  it('shrink.c continues with three ranks after a failure', async () => {
    const program = await compileWithEngine('examples/shrink.c', directory);
    const { status, stdout, stderr } = await Command.run(['--on-failure', 'shrink', '-n', '4', program]);
    const expected = [0, 1, 2].map((rank) => `[${rank}] rank ${rank}: 1000 steps done, 3 ranks are left`);
    expect({ status, lines: stdout.trimEnd().split('\n').toSorted() }, stderr).toEqual({ status: 0, lines: expected });
  });

  it('hello.c greets from every rank after a barrier', async () => {
    const program = await compileWithEngine('examples/hello.c', directory);
    expect(await lines(['-n', '2', program])).toEqual([
      '[0] all 2 are there',
      `[0] hello from rank 0 of 2 on ${here}`,
      `[1] hello from rank 1 of 2 on ${here}`,
    ]);
  });
});
