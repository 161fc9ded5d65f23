/** Forks, threads, dlclose, and ends without ncclCommDestroy: what docs/programs.md says of each. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compile, compileWithEngine } from '../rig/compile.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-misuse-'));
});
afterAll(() => rm(directory, { recursive: true }));

async function expectOk(...argv: readonly string[]): Promise<void> {
  const { status, stdout, stderr } = await Command.run(argv);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.match(/ok$/gm)).toHaveLength(2);
}

it.each(['after', 'before'])('a process may fork %s it used the engine', async (when) => {
  await expectOk('-n', '2', await compileWithEngine('test/rig/programs/fork.c', directory), when);
});

it('threads may have a communicator each or take turns on one', async () => {
  await expectOk('-n', '2', await compileWithEngine('test/rig/programs/threads.c', directory));
});

it('dlclose and dlopen succeed with and without a communicator', async () => {
  const program = await compile('test/rig/programs/dlclose.c', directory);
  await expectOk('-n', '2', program, join(repository, 'build/libnccl.so.2'));
});

it.each(['after', 'before'])('pthread_exit of the main thread %s the last destroy ends the process', async (when) => {
  await expectOk('-n', '2', await compileWithEngine('test/rig/programs/pthread-exit.c', directory), when);
});

it('a split or shrink in a failed group does not count', async () => {
  await expectOk('-n', '2', await compileWithEngine('test/rig/programs/failed-split.c', directory));
});

it('a call on a full queue waits, or returns ncclInProgress without blocking', async () => {
  await expectOk('-n', '2', await compileWithEngine('test/rig/programs/queue.c', directory), directory);
});

describe('a rank without ncclCommDestroy', () => {
  let program = '';
  beforeAll(async () => {
    program = await compileWithEngine('test/rig/programs/leave.c', directory);
  });

  it.each(['return', 'exit', 'quick_exit', '_exit', 'handler'])('a rank that ends by %s exits with 0', async (way) => {
    const { status, stderr } = await Command.run([
      '-n',
      '3',
      program,
      way,
      'alone',
      await mkdtemp(join(directory, 'past-')),
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it.each(['return', 'exit', 'quick_exit', '_exit', 'handler', 'busy'])(
    'the waiting ranks fail when a rank ends by %s',
    async (way) => {
      const { stdout } = await Command.run([
        '-n',
        '3',
        program,
        way,
        'awaited',
        await mkdtemp(join(directory, 'past-')),
      ]);
      const told =
        way === 'busy'
          ? /\] (?:5: the ranks’ calls differ|6: rank 2 \()/gm // whichever is found first: its call was another one, and it is gone
          : way === 'handler'
            ? /\] 5: the ranks’ calls differ: .* called a barrier, which rank 2 on host \S+ did not before ncclCommFinalize$/gm
            : /\] 6: rank 2 \(.*\) (?:exited with status 0|ended) without leaving the communicator/gm; // it may be heard of first that it is gone
      expect(stdout.match(told), stdout).toHaveLength(2);
    },
  );
});
