/** The job of test/rig/programs/left-peer.c: its last rank leaves in order, and others need it all the same. */
import { mkdtemp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';
import { withoutDifferences } from './differences.ts';

/** Calls that one rank makes, and that all do. */
const messages = ['receive', 'send'] as const;
const collectives = [
  'allReduce',
  'allGather',
  'reduceScatter',
  'broadcast',
  'broadcastToIt',
  'reduce',
  'reduceToIt',
  'allToAll',
  'gather',
  'scatter',
  'barrier',
] as const;
export const callsOnLeft = [...messages, ...collectives];
/** Generous, on a loaded machine: what is to be told is told within a second. */
const LATEST_MS = 8000;

/** `where`: options that place `ranks` ranks. `before`: connections to the last rank stand, or `never` did. */
export async function callLeft(
  program: string,
  call: string,
  before: 'before' | 'never',
  ranks: number,
  where: readonly string[],
  cluster: Cluster | null,
): Promise<void> {
  const directory = await mkdtemp(join(dirname(program), 'left-'));
  const argv = [...where, program, call, before, directory];
  const { status, stdout, stderr } = await Command.run(argv, cluster === null ? {} : { cluster });
  expect({ status, stderr: withoutDifferences(stderr) }, stdout).toEqual({ status: 0, stderr: '' });
  const told = [...stdout.matchAll(/\] (\d+) after (\d+) ms: (.*)$/gm)];
  const alone = messages.some((message) => message === call);
  expect(told, stdout).toHaveLength(alone ? 1 : ranks - 1);
  for (const [, result, milliseconds, sentence] of told) {
    expect({ result, sentence }, stdout).toMatchObject({
      result: '5', // ncclInvalidUsage
      sentence: expect.stringMatching(
        new RegExp(
          `^the ranks’ calls differ: rank \\d .* called .*, which rank ${ranks - 1} .* did not before ncclCommFinalize$`,
        ),
      ),
    });
    expect(Number(milliseconds)).toBeLessThan(LATEST_MS);
  }
  if (alone) expect(stdout.match(/untouched 0$/gm) ?? [], stdout).toHaveLength(ranks - 2);
}
