/** The jobs of test/rig/programs/shrink.c and shrink-dead.c. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { repository } from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';

/** What a communicator's last rank, and the others, can be at when it dies. */
export const shrinkingStates = ['idle', 'operation', 'shrink', 'part'] as const;

/** `where`: options that place the ranks; `left` of them go on, once naming the dead rank and once leaving out whoever is gone. */
export async function shrinkWithoutDead(
  program: string,
  state: string,
  where: readonly string[],
  left: number,
  cluster: Cluster | null,
): Promise<void> {
  for (const way of ['named', 'gone'])
    await shrinkOnce(program, state, ['-x', `SHRINK=${way}`, ...where], left, cluster);
}

async function shrinkOnce(
  program: string,
  state: string,
  where: readonly string[],
  left: number,
  cluster: Cluster | null,
): Promise<void> {
  const { status, stdout } = await runShrink(program, state, where, cluster);
  expect(stdout.match(new RegExp(`shrunk to ${left}$`, 'gm')), stdout).toHaveLength(left);
  expect(status).toBe(where.includes('--on-failure') ? 0 : 137);
}

/** The others, on `where`, shrink the communicator together with the dead rank. */
export async function shrinkWithDead(
  program: string,
  where: readonly string[],
  others: number,
  cluster: Cluster | null,
): Promise<void> {
  const { status, stdout } = await runShrink(program, 'needed', where, cluster);
  const named = /\] 6: rank \d of 4 in ncclCommShrink: rank 3 .*(?:SIGKILL|ended without leaving the communicator)/g;
  expect(stdout.match(named), stdout).toHaveLength(others);
  expect(status).toBe(137);
}

async function runShrink(program: string, state: string, where: readonly string[], cluster: Cluster | null) {
  const directory = await mkdtemp(join(repository, 'build/test-shrink-'));
  try {
    const options = ['--grace', '20', ...where, program, state, directory];
    return await Command.run(options, cluster === null ? {} : { cluster });
  } finally {
    await rm(directory, { recursive: true });
  }
}
