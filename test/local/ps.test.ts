/** `ncclrun ps`: jobs that run, and none that do not, however they ended. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

interface Listed {
  readonly jobId: string;
  readonly pid: number;
  readonly programs: readonly (readonly string[])[];
  readonly hosts: readonly { readonly name: string; readonly ranks: readonly number[] }[];
}

/** The listed job of that program. */
async function listed(path: string): Promise<Listed | undefined> {
  const { status, stdout } = await Command.run(['ps', '--json']);
  expect(status).toBe(0);
  const { jobs }: { jobs: Listed[] } = JSON.parse(stdout);
  return jobs.find(({ programs }) => programs.flat().includes(path));
}

it.each([
  [
    'has ended',
    (command: Command, rank: { exit(code: number): Promise<void> }) => rank.exit(0).then(() => command.outcome),
  ],
  ['was killed', (command: Command) => (command.process.kill('SIGKILL'), command.outcome)],
])('ncclrun ps lists a job until it %s', async (_, end) => {
  await using steering = await Steering.open();
  const mark = steering.path;
  await using command = Command.start(['-n', '1', ...steering.options, steering.program, mark]);
  const rank = await steering.rank(0);
  expect(await listed(mark)).toMatchObject({ pid: command.pid, hosts: [{ name: 'localhost', ranks: [0] }] });
  const { stdout } = await Command.run(['ps']);
  expect(stdout).toMatch(/^job [0-9a-f]+: 1 rank on 1 host, for \d+ s, process \d+$/m);
  expect(stdout).toMatch(/^ {2}localhost {3}rank 0$/m);
  await end(command, rank);
  expect(await listed(mark)).toBeUndefined();
});

it.each(['its id', 'the beginning of its id', 'the process of ncclrun'])(
  'ncclrun stop ends a job by %s',
  async (by) => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '1', ...steering.options, steering.program, steering.path]);
    await steering.rank(0);
    const { jobId } = (await listed(steering.path)) ?? { jobId: '' };
    const word = { 'its id': jobId, 'the beginning of its id': jobId.slice(0, 12) }[by] ?? String(command.pid);
    const { status, stdout } = await Command.run(['stop', word]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: `job ${jobId} has ended\n` });
    expect((await command.outcome).status).toBe(143);
  },
);

it.each([
  [['nobody'], 'no running job of yours on this machine is called "nobody"'],
  [[], 'stop needs one job, and has 0'],
  [['a', 'b'], 'stop needs one job, and has 2'],
])('ncclrun stop with %j is refused', async (words, message) => {
  const { status, stderr } = await Command.run(['stop', ...words]);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

it('ncclrun ps rejects arguments', async () => {
  const { status, stderr } = await Command.run(['ps', 'all']);
  expect({ status, output: stderr.includes('"all"') }).toEqual({ status: 2, output: true });
});

it('a result that cannot be printed is an error of the output, and no internal one', async () => {
  const words = ['-c', 'exec "$0" --json -n 1 true > /dev/full', join(repository, 'bin/ncclrun')];
  const { status, stderr } = await Command.run(words, { program: 'sh' });
  expect(status).toBe(125);
  expect(stderr).toMatch(/^ncclrun: cannot write the output: ENOSPC/);
  expect(stderr).not.toContain('internal error');
});
