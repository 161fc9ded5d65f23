/** The job of test/rig/programs/aborted-peer.c: its first rank aborts the communicator. */
import { mkdtemp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { Command, type Outcome } from './command.ts';

export const abortedStates = ['waits', 'later', 'sends', 'chain'] as const;
/** Generous, on a loaded machine: what is to be told is told within a second. */
const LATEST_MS = 8000;

async function run(
  program: string,
  state: string,
  options: readonly string[],
  cluster: Cluster | null,
): Promise<Outcome> {
  const directory = await mkdtemp(join(dirname(program), 'aborted-'));
  return Command.run([...options, program, state, directory], cluster === null ? {} : { cluster });
}

/** `where`: options that place three ranks. */
export async function abortPeer(
  program: string,
  state: string,
  where: readonly string[],
  cluster: Cluster | null,
): Promise<void> {
  const { status, stdout, stderr } = await run(program, state, where, cluster);
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  const told = [...stdout.matchAll(/^\[(\d)\] (\d+) after (\d+) ms: (.*)$/gm)];
  expect(
    told.map(([, rank]) => Number(rank)).toSorted((one, other) => one - other),
    stdout,
  ).toEqual(state === 'chain' ? [1, 2] : [1]);
  for (const [, , result, milliseconds, sentence] of told) {
    expect({ result, sentence }).toEqual({ result: '6', sentence: expect.stringMatching(/rank 0 .*abort/) });
    expect(Number(milliseconds)).toBeLessThan(LATEST_MS);
  }
}

/** A rank that fails because it needed the one that aborted: that one is to blame. */
export async function failForAborted(
  program: string,
  where: readonly string[],
  cluster: Cluster | null,
): Promise<void> {
  const { status, stderr } = await run(program, 'fails', ['--grace', '1', ...where], cluster);
  expect(status).toBe(125);
  expect(stderr).toMatch(/^ncclrun: rank 0 \(\S+, pid \d+\) aborted the communicator/m);
}
