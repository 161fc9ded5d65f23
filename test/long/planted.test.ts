/** Every fault of test/planted in every rank and collective: at least 99 of 100 verdicts are right. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { allCases } from '../planted/cases.ts';
import { faultUnavailable, FAULTS } from '../planted/fault.ts';
import type { Case } from '../planted/play.ts';
import { playAll } from '../planted/play-all.ts';
import { compileFaulty, hostDevice, standIn } from '../planted/program.ts';
import { tableText, wrongText } from '../planted/table.ts';
import { repository } from '../rig/cluster.ts';
import { buildStandIn } from '../rig/stand-in.ts';

const WRONG_AT_MOST = 0.01;
const isPossible = ({ fault }: Case): boolean => faultUnavailable(fault) === null;
for (const { name, reason } of FAULTS.map((fault) => ({ name: fault.name, reason: faultUnavailable(fault) })))
  if (reason !== null) process.stderr.write(`SKIPPED the fault ${name}: ${reason}\n`);

let directory = '';
beforeAll(async () => {
  buildStandIn();
  directory = await mkdtemp(join(repository, 'build/test-planted-'));
}, 900_000);
afterAll(() => rm(directory, { recursive: true }));

it.each([
  ['eager calls', false, hostDevice],
  ['replays of a graph', true, standIn],
] as const)('99 of 100 verdicts about faults in %s are right', { timeout: 3_600_000 }, async (_, replays, device) => {
  const program = await compileFaulty(directory);
  const cases = allCases(replays).filter(isPossible);
  const played = await playAll(program, cases, device, 2, () => undefined);
  console.log(tableText(played));
  const wrong = played.filter(({ wrongs }) => wrongs.length > 0);
  expect(wrong.length, wrong.map(wrongText).join('\n')).toBeLessThanOrEqual(cases.length * WRONG_AT_MOST);
});
