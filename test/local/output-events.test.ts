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
  ['a job with bindings', ['-n', '1', '--report-bindings', 'true'], ['binding']],
  ['a job with a failing rank', ['-n', '2', 'sh', '-c', 'exit $RANK'], ['failure', 'rank-exited']],
  ['a job without its program', ['-n', '1', './nowhere'], ['failure']],
  ['a job that times out', ['-n', '1', '--timeout', '0.2', 'sleep', '9'], ['failure', 'rank-exited']],
  ['a job with an unreachable host', ['-H', 'host.invalid:1', 'true'], ['host-connecting', 'host-step', 'failure']],
  ['a job of several programs', ['-n', '1', 'true', ':', '-n', '1', 'true'], ['job-started']],
])('the events of %s end with job-ended and match the schema', async (_name, argv, expected) => {
  await Command.run(['--events', file(), ...argv]);
  const types = readEvents(file());
  expect(types.at(-1)).toBe('job-ended');
  expect(types).toEqual(expect.arrayContaining(expected));
});

it('a rejected command line writes a single failure event', async () => {
  await Command.run(['--events', file(), '-n', '2', '-H', 'localhost:1', 'true']);
  expect(readEvents(file())).toEqual(['failure']);
});

it('an interrupted job writes signal, notice, failure and job-ended events', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['--events', file(), '-n', '2', ...steering.options, steering.program]);
  await steering.ranks(2);
  command.signal('SIGUSR1');
  command.signal('SIGINT');
  await command.outcome;
  expect(readEvents(file())).toEqual(expect.arrayContaining(['signal', 'notice', 'failure', 'job-ended']));
});
