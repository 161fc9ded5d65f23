/** `ncclrun status`: how the ranks of a running job get on. */
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';
import type { JobStatus } from '../../launcher/model/status.ts';

it('ncclrun status names the ranks that wait, the one that is stopped, and the verdicts', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['--hang-after', '0.5', '-n', '4', ...steering.options, steering.program]);
  const ranks = await steering.ranks(4);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  const idle = await statusOf(command.pid);
  expect(idle).toMatchObject({
    schemaVersion: 1,
    ranks: 4,
    hosts: 1,
    silent: [],
    outliers: [],
    without: 0,
    groups: [
      {
        count: 1,
        size: 4,
        hosts: 1,
        shares: [{ condition: 'idle', count: 4, seconds: 0 }],
        operations: { lowest: 1, highest: 1, collective: 'allReduce' },
      },
    ],
    verdicts: [],
  });
  const [, , stopped] = ranks;
  if (stopped === undefined) throw new Error('there are four');
  process.kill(stopped.pid, 'SIGSTOP');
  const waiting = ranks.filter((rank) => rank !== stopped).map((rank) => rank.allReduce(1));
  await command.line('stderr', /without progress/);
  const status = await statusOf(command.pid);
  expect(status.outliers).toMatchObject([
    { ranks: '2', hosts: ['localhost'], condition: 'stopped', operation: 1, others: 2 },
  ]);
  expect(status.groups).toMatchObject([{ shares: [{ condition: 'waiting', count: 3 }, { condition: 'stopped' }] }]);
  expect(status.verdicts).toMatchObject([{ kind: 'stopped', blamed: [{ ranks: '2' }] }]);
  const { stdout } = await Command.run(['status', String(command.pid)]);
  expect(stdout).toMatch(/^outliers\n {2}rank 2 on localhost: stopped at allReduce #1 \(most ranks: #2\)/m);
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  process.kill(stopped.pid, 'SIGKILL');
  await Promise.allSettled(waiting);
});

it('ncclrun status of a job without a communicator says so', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  await steering.ranks(2);
  expect((await Command.run(['status', String(command.pid)])).stdout).toContain('2 ranks without a communicator');
});

it.each([
  [['nobody'], 'no running job of yours on this machine is called "nobody"'],
  [[], 'status needs one job, and has 0'],
])('ncclrun status with %j is refused', async (words, message) => {
  const { status, stderr } = await Command.run(['status', ...words]);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

async function statusOf(pid: number): Promise<JobStatus> {
  const { stdout, stderr } = await Command.run(['status', '--json', String(pid)]);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}
