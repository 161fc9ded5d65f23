/** Faults planted in one rank of a job: the verdict names the rank, the operation and the communicator. .ci/full plants all (test/planted). */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { faultUnavailable, FAULTS } from '../planted/fault.ts';
import { play, RANKS } from '../planted/play.ts';
import { compileFaulty, hostDevice } from '../planted/program.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-planted-'));
  program = await compileFaulty(directory);
});
afterAll(() => rm(directory, { recursive: true }));

/** Each fault once, with another collective and rank each. */
const sampled = FAULTS.filter(({ name }) => name !== 'freeze').map((fault, index) => ({
  fault,
  collective: fault.of[(index * 3) % fault.of.length] ?? 'allReduce',
  rank: index % RANKS,
  replays: false,
}));

const [possible, others] = [true, false].map((wanted) =>
  sampled.filter(({ fault }) => (faultUnavailable(fault) === null) === wanted),
);
for (const { fault } of others ?? []) describeIf(faultUnavailable(fault), `the fault ${fault.name}`, () => undefined);

it.each((possible ?? []).map((one) => [one.fault.name, one.collective, one] as const))(
  'the verdict names the rank with the fault %s in %s',
  async (_, __, one) => {
    expect((await play(program, one, hostDevice)).wrongs).toEqual([]);
  },
);
