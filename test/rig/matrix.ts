/** Runs the program that goes through every collective, type, operator and place (native/test/matrix) as a job. */
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';
import { buildNativeTests, nativeTests } from './native-tests.ts';

export function buildMatrix(): void {
  buildNativeTests('matrix');
}

/** `placement` is the launcher's options that say where; the seed decides the elements, roots, offsets and delays. */
export async function runMatrix(
  ranks: number,
  placement: readonly string[],
  options: { readonly cluster?: Cluster; readonly seed?: number; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<void> {
  const { seed = 1, ...rest } = options;
  const { status, stdout, stderr } = await Command.run([...placement, join(nativeTests, 'matrix'), String(seed)], rest);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^\\d{4,} cases on ${ranks} ranks: 0 wrong\n$`));
}
