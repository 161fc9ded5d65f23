/** Many small operations with flat memory; .ci/full does a million. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

const operations = 20_000 * Number(process.env['NCCLRUN_TEST_REPEAT'] ?? 1);

it(`memory stays flat over ${operations} operations of all kinds`, { timeout: 600_000 }, async () => {
  const directory = await mkdtemp(join(repository, 'build/test-soak-'));
  try {
    const program = await compileWithEngine('test/rig/programs/soak.c', directory);
    const { status, stdout, stderr } = await Command.run(['-n', '2', program, String(operations)]);
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^\[0\] \d+ \d+\n$/),
      stderr: '',
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});
