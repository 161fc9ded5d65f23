/** Correct traffic that looks as if something were wrong: no verdict. NCCLRUN_TRAFFIC_MINUTES (2) is how long, NCCLRUN_TEST_SEED what is drawn. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { parseResult } from '../rig/result.ts';

const SECONDS = Math.ceil((Number(process.env['NCCLRUN_TRAFFIC_MINUTES'] ?? 2) * 60) / 2);
const SEED = Number(process.env['NCCLRUN_TEST_SEED'] ?? 1);
const HANG_AFTER_S = 3;
/** Of the time after which a wait is a hang. */
const LONGEST = 0.9;
/** Longer than a wait may last. */
const SUSPENDED_MS = 1.5 * HANG_AFTER_S * 1000;

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-traffic-'));
  program = await compileWithEngine('test/rig/programs/correct-traffic.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each([
  ['one host', ['-n', '4']],
  ['two hosts', ['--simulate-hosts', '2', '-n', '4']],
])(
  'correct traffic on %s leads to no verdict, though the job is suspended on the way',
  { timeout: (SECONDS + 120) * 1000 },
  async (_, where) => {
    const words = [String(SECONDS), String(SEED), String(HANG_AFTER_S * 1000 * LONGEST)];
    const options = ['--json', '--hang-after', String(HANG_AFTER_S), ...where];
    await using command = Command.start([...options, program, ...words]);
    const over = command.outcome.then(() => true);
    const goesOn = async (ms: number): Promise<boolean> => (await Promise.race([over, delay(ms)])) !== true;
    if (await goesOn((SECONDS * 1000) / 2)) command.signal('SIGTSTP');
    if (await goesOn(SUSPENDED_MS)) command.signal('SIGCONT');
    const { status, stdout, stderr } = await command.outcome;
    const { verdicts } = parseResult(stdout);
    expect(verdicts.map(({ message }) => message)).toEqual([]);
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.not.stringContaining('without progress') });
  },
);
