/** --port-range in jobs of several hosts that this machine plays, so that all of them share its ports. */
import { createServer } from 'node:net';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { freeRow } from '../rig/port-row.ts';

const job = ['--simulate-hosts', '2', '-n', '4', 'examples/all-reduce.ts'];
const rangeOf = async (count: number): Promise<string> => {
  const { first, last } = await freeRow(count);
  return `${first}-${last}`;
};
const summed = { status: 0, stderr: '', stdout: expect.stringContaining('4 ranks on 2 hosts summed') };

it('the least number of ports suffices, also for jobs one after the other', async () => {
  const range = await rangeOf(8);
  for (const _ of [1, 2, 3]) expect(await Command.run(['--port-range', range, ...job])).toMatchObject(summed);
});

it('jobs at the same time share a range', async () => {
  const range = await rangeOf(40);
  const jobs = [1, 2, 3].map(() => Command.run(['--port-range', range, ...job]));
  for (const outcome of await Promise.all(jobs)) expect(outcome).toMatchObject(summed);
});

it('MPIEXEC_PORT_RANGE, as Hydra writes it, is a range for the ranks, too', async () => {
  const environment = { MPIEXEC_PORT_RANGE: '22000:22999' };
  const words = ['-n', '1', 'sh', '-c', 'echo $NCCLRUN_PORT_RANGE'];
  expect(await Command.run(words, { environment })).toMatchObject({ status: 0, stdout: '22000-22999\n' });
});

it.each([
  [['--port-range', '90-80'], /^ncclrun: --port-range is "90-80"\n {2}next: a range of ports from 1024/u],
  [
    ['--port-range', '20000-20003'],
    /20000-20003 has 4 ports, and this machine needs at least 8: .*\n {2}next: write a range of 8 ports or more, such as --port-range 20000-20007/u,
  ],
])('%j is refused before anything starts', async (words, sentence) => {
  const { status, stderr } = await Command.run([...words, ...job]);
  expect(status).toBe(2);
  expect(stderr).toMatch(sentence);
});

it('a job of one host whose range is used up names the range and what to do', async () => {
  const { first } = await freeRow(1);
  const server = createServer().listen(first, '0.0.0.0');
  await once(server, 'listening');
  try {
    const { status, stderr } = await Command.run(['-n', '1', '--port-range', `${first}-${first}`, 'true']);
    expect(status).toBe(125);
    expect(stderr).toMatch(new RegExp(`no port of ${first}-${first} \\(--port-range\\) is free; widen the range`, 'u'));
  } finally {
    server.close();
  }
});
