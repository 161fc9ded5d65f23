/** Commands that ask a running job, or end it, while its launcher is stopped (kill -STOP, ^Z). */
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { processEntry } from '../rig/processes.ts';
import { Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

it('commands that ask a stopped launcher say that it is stopped', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '1', ...steering.options, steering.program]);
  await steering.rank(0);
  command.signal('SIGSTOP');
  const job = String(command.pid);
  const words = `ncclrun: job \\w+ does not answer: its ncclrun \\(process ${job}\\) is stopped\n  next: kill -CONT ${job} lets it go on\n`;
  const names = ['status', 'stack', 'dump', 'logs', 'attach'];
  const outcomes = await Promise.all(names.map((name) => Command.run([name, job])));
  for (const { status, stderr } of outcomes)
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(new RegExp(`^${words}$`)) });
});

it('ncclrun stop ends the job of a stopped launcher', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '1', ...steering.options, steering.program]);
  await steering.rank(0);
  command.signal('SIGSTOP');
  expect(await Command.run(['stop', String(command.pid)])).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/has ended\n$/),
  });
  expect((await command.outcome).stderr).toMatch(/got SIGTERM/);
});

it('a launcher that was stopped for longer than its lease says so, and blames no rank', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '1', ...steering.options, steering.program]);
  const { pid } = await steering.rank(0);
  command.signal('SIGSTOP');
  await until('the guardian has ended the rank', () => processEntry(pid) === null, 30_000, 50);
  command.signal('SIGCONT');
  const { status, stderr } = await command.outcome;
  expect(stderr).toMatch(/^ncclrun: localhost ended its ranks: it had heard nothing of this launcher for \d/);
  expect(status).toBe(125);
});
