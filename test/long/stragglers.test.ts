/** How slow a rank must be to be named, on real jobs: 5 % is enough, and of equal ranks none is named. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf, ownClocksUnavailable } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command, type CommandOptions } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-straggler-'));
  program = await compileWithEngine('test/rig/programs/straggle.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

/** Steps of 60 ms. */
async function named(
  percent: number,
  where: readonly string[],
  options: CommandOptions = {},
  more: readonly string[] = [],
): Promise<string[]> {
  const words = ['500', '60', '2', String(percent), ...more];
  const { verdicts } = await Command.result([...where, '--straggler-window', '4', program, ...words], options);
  return verdicts.map(({ kind, blamed }) => `${kind} ${blamed.map(({ ranks }) => ranks).join()}`);
}

it.each([
  ['one host', ['-n', '4']],
  ['two agents of one machine', ['--simulate-hosts', '2', '-n', '4']],
])('a rank that is 5 % slower is named on %s, and none of equal ranks', async (_, where) => {
  expect(await named(0, where)).toEqual([]);
  expect(await named(5, where)).toEqual(['straggler-compute 2']);
  expect(await named(30, where)).toEqual(['straggler-compute 2']);
});

it('a rank that is 5 % slower is named where every step ends with many collectives in a row', async () => {
  const burst = ['1024', 'allReduce', '30'];
  expect(await named(0, ['-n', '4'], {}, burst)).toEqual([]);
  expect(await named(5, ['-n', '4'], {}, burst)).toEqual(['straggler-compute 2']);
});

describeIf(ownClocksUnavailable(), 'hosts with clocks of their own', () => {
  it('a rank that is 5 % slower is named, and none of equal ranks', async () => {
    await using cluster = await Cluster.start(2, { ownClocks: true });
    const where = ['-H', 'h1:2,h2:2'];
    expect(await named(0, where, { cluster })).toEqual([]);
    expect(await named(5, where, { cluster })).toEqual(['straggler-compute 2']);
    expect(await named(30, where, { cluster })).toEqual(['straggler-compute 2']);
  });
});
