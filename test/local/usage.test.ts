/** What is refused before anything starts: status 2, one sentence, no stack trace. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-usage-'));
});
afterAll(() => rm(directory, { recursive: true }));

async function refused(...argv: string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(argv);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
  return stderr;
}

it('the launcher names an unknown option and suggests the right one', async () => {
  expect(await refused('--hostfle', 'x', '/bin/true')).toMatch(/--hostfle[\s\S]*--hostfile/);
});

it('the launcher requires a program and valid numbers', async () => {
  expect(await refused('-n', '2')).toMatch(/program/);
  expect(await refused('-n', 'two', '/bin/true')).toMatch(/-n[\s\S]*two/);
  expect(await refused('-n', '0', '/bin/true')).toMatch(/-n/);
  expect(await refused('--timeout', 'soon', '/bin/true')).toMatch(/--timeout[\s\S]*soon/);
  expect(await refused('--timeout', '2200000', '/bin/true')).toMatch(/--timeout[\s\S]*at most 2147483/);
});

it('the launcher refuses what stands in the place of the program, and notes what may be meant otherwise', async () => {
  expect(await refused('-n', '2', 'MV2_USE_CUDA=1', '/bin/true')).toContain(
    'write -x MV2_USE_CUDA=1 before the program',
  );
  expect(await refused('-H', 'localhost:1', 'localhost:1', '/bin/true')).toContain('-H localhost:1,localhost:1');
  expect(await refused('–np', '2', '/bin/true')).toContain('write --np');
  const { status, stderr } = await Command.run(['-n', '1', '-q', 'no-such-qos', '-C', 'gpu', '/bin/true']);
  expect(status).toBe(127);
  expect(stderr).toContain('cannot start no-such-qos');
  const loud = await Command.run(['-l', 'no-such-user', '-w', 'localhost', '/bin/true']);
  expect(loud.stderr).toContain('-l has no value here, so "no-such-user" is the program');
});

it('the launcher shows the position of an error in a hostfile', async () => {
  const file = join(directory, 'hosts');
  await writeFile(file, '# two hosts\nlocalhost slots=2\nlocalhost slot=2\n');
  const stderr = await refused('--hostfile', file, '-n', '2', '/bin/true');
  expect(stderr).toContain(`${file}:3:11`);
  expect(stderr).toMatch(/^ {4}localhost slot=2\n {14}~/m);
});

it('the launcher shows the position of an error in a -H list', async () => {
  expect(await refused('-H', 'localhost:two', '/bin/true')).toMatch(/-H:1:11[\s\S]*localhost:two/);
});

it('the launcher names a missing hostfile instead of using this machine', async () => {
  expect(await refused('--hostfile', join(directory, 'missing'), '/bin/true')).toContain(join(directory, 'missing'));
});

it('the launcher compares ranks with slots and suggests --oversubscribe', async () => {
  const stderr = await refused('-H', 'localhost:2', '-n', '3', '/bin/true');
  expect(stderr).toMatch(/\b3\b/);
  expect(stderr).toMatch(/\b2\b/);
  expect(stderr).toContain('--oversubscribe');
  const { status } = await Command.run(['-H', 'localhost:2', '-n', '3', '--oversubscribe', '/bin/true']);
  expect(status).toBe(0);
});

it('localhost without a slot count runs any number of ranks', async () => {
  expect((await Command.run(['-n', '40', '/bin/true'])).status).toBe(0);
});

it('--dry-run shows the host of each rank and starts nothing', async () => {
  const { status, stdout } = await Command.run([
    '--dry-run',
    '-n',
    '3',
    '-H',
    'localhost:2,elsewhere:1',
    'no-such-program',
  ]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/elsewhere/);
});

it('the launcher reports that its working directory no longer exists', async () => {
  const script = 'mkdir "$2/gone" && cd "$2/gone" && rmdir "$2/gone" && exec "$1" -n 1 pwd';
  const argv = ['-c', script, 'sh', join(repository, 'bin/ncclrun'), directory];
  const { status, stderr } = await Command.run(argv, { program: 'sh' });
  expect(stderr).toMatch(/^ncclrun: the directory that you stand in is gone\n {2}next: cd to one that exists$/m);
  expect(status).toBe(2);
});
