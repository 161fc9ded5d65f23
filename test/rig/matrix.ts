/** Runs the program that goes through every collective, type, operator and place (native/test/matrix) as a job. */
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';
import { buildNativeTests, nativeTests } from './native-tests.ts';

export function buildMatrix(): void {
  buildNativeTests('matrix');
}

/**
 * `placement` is the launcher's options that say where; the seed decides the elements, roots, offsets and delays. With `part` N,
 * every Nth combination of type, count and place only.
 */
export async function runMatrix(
  ranks: number,
  placement: readonly string[],
  options: {
    readonly cluster?: Cluster;
    readonly seed?: number;
    readonly part?: number;
    readonly environment?: NodeJS.ProcessEnv;
  } = {},
): Promise<void> {
  const { seed = 1, part = 1, ...rest } = options;
  const program = [join(nativeTests, 'matrix'), String(seed), String(part)];
  const { status, stdout, stderr } = await Command.run([...placement, ...program], rest);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^\\d{3,} cases on ${ranks} ranks: 0 wrong\n$`));
}
