/** Communicators that come and go over the stand-in for libibverbs: how many a job makes, and that nothing of them is left. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Command } from './command.ts';
import { compileWithEngine } from './compile.ts';
import { StandInVerbs } from './stand-in-verbs.ts';

/** Two ranks on two hosts make and destroy `count` of them. */
export async function expectNothingLeft(count: number): Promise<void> {
  using verbs = new StandInVerbs();
  const directory = await mkdtemp(join(tmpdir(), 'ncclrun-many-'));
  try {
    const program = await compileWithEngine('test/rig/programs/many-communicators.c', directory);
    const environment = { ...verbs.environment('device=mlx5_0 port=2'), NCCLRUN_DEVICE: 'host' };
    const words = ['--simulate-hosts', '2', '-n', '2', '--tag-output=none', program, String(count)];
    const { status, stdout, stderr } = await Command.run(words, { environment });
    expect({ status, lines: stdout.trim().split('\n') }, stderr).toEqual({
      status: 0,
      lines: [`nothing is left of ${count}`, `nothing is left of ${count}`],
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}
