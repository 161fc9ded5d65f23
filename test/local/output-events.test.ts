/** --events: every line of real jobs is as docs/events.md has it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { readEvents } from '../rig/events.ts';
import { Steering } from '../rig/steering.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-events-'));
});
afterAll(() => rm(directory, { recursive: true }));

const file = () => join(directory, 'events');

it.each<[string, string[], string[]]>([
  [
    'a job that ends well',
    ['-n', '2', 'true'],
    ['job-started', 'host-up', 'rank-started', 'rank-exited', 'host-ended'],
  ],
  ['bindings', ['-n', '1', '--report-bindings', 'true'], ['binding']],
  ['a rank that fails', ['-n', '2', 'sh', '-c', 'exit $RANK'], ['failure', 'rank-exited']],
  ['a program that is missing', ['-n', '1', './nowhere'], ['failure']],
  ['a timeout', ['-n', '1', '--timeout', '0.2', 'sleep', '9'], ['failure', 'rank-exited']],
  ['a host that cannot be reached', ['-H', 'host.invalid:1', 'true'], ['host-connecting', 'host-step', 'failure']],
  ['several programs', ['-n', '1', 'true', ':', '-n', '1', 'true'], ['job-started']],
])('%s', async (_name, argv, expected) => {
  await Command.run(['--events', file(), ...argv]);
  const types = readEvents(file());
  expect(types.at(-1)).toBe('job-ended');
  expect(types).toEqual(expect.arrayContaining(expected));
});

it('a command that is wrong from the start has a failure alone', async () => {
  await Command.run(['--events', file(), '-n', '2', '-H', 'localhost:1', 'true']);
  expect(readEvents(file())).toEqual(['failure']);
});

it('an interrupted job', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['--events', file(), '-n', '2', ...steering.options, steering.program]);
  await steering.ranks(2);
  command.signal('SIGUSR1');
  command.signal('SIGINT');
  await command.outcome;
  expect(readEvents(file())).toEqual(expect.arrayContaining(['signal', 'notice', 'failure', 'job-ended']));
});
