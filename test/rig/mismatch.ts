/** The job of test/rig/programs/mismatch.c: the third collective of rank 1 differs from the others', and all are told so. */
import { mkdtemp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';

const usual = 'allReduce of 1000 int32 with sum';
const broadcast = 'broadcast of 1000 int32, root 0';

/** In what the call differs, what the others call, and what rank 1 does. */
export type Mismatch = readonly [what: string, theirs: string, odd: string];
export const mismatches: readonly Mismatch[] = [
  ['type', usual, 'allReduce of 1000 float32 with sum'],
  ['operator', usual, 'allReduce of 1000 int32 with max'],
  ['count', usual, 'allReduce of 2000 int32 with sum'],
  ['kind', usual, broadcast],
  ['root', broadcast, 'broadcast of 1000 int32, root 1'],
  ['nobody', 'broadcast of 1000 int32, root 1', broadcast],
  ['other', broadcast, 'broadcast of 1000 int32, root 2'],
  ['order', broadcast, usual],
];

/** `where`: options that place three ranks. Returns what the ranks were told. */
export async function runMismatch(
  program: string,
  [what, theirs, odd]: Mismatch,
  where: readonly string[],
  cluster: Cluster | null,
): Promise<string[]> {
  const directory = await mkdtemp(join(dirname(program), 'told-'));
  const argv = [...where, program, what, directory];
  const { stdout, stderr } = await Command.run(argv, cluster === null ? {} : { cluster });
  const told = stdout.split('\n').filter((line) => line !== '');
  expect(told, stderr).toHaveLength(3);
  for (const line of told) {
    expect(line).toMatch(/^\[\d\] 5: /); // ncclInvalidUsage
    expect(line).toMatch(/the ranks’ calls differ .*the communicator’s collective number \d+: |expects \d+ in the/);
  }
  for (const line of told.filter((one) => one.includes('from the communicator’s collective number 3:'))) {
    for (const call of line.includes(' is at number ') ? [] : [theirs, odd]) expect(line).toContain(call);
  }
  return told;
}

/** The job of test/rig/programs/finalize.c: of three ranks the last finalizes where the others split (or sum). */
export async function runFinalize(
  program: string,
  what: 'split' | 'sum',
  where: readonly string[],
  cluster: Cluster | null,
): Promise<string[]> {
  const directory = await mkdtemp(join(dirname(program), 'told-'));
  const argv = [...where, program, what, directory];
  const { status, stdout, stderr } = await Command.run(argv, cluster === null ? {} : { cluster });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const told = stdout.split('\n').filter((line) => line !== '');
  expect(told).toHaveLength(2);
  return told;
}
