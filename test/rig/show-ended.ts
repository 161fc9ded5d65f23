/** Set-up of each file of tests that run commands: a failed test shows what they said, and leaves none of them behind. */
import { afterEach, beforeEach } from 'vitest';
import { endRunning, takeEnded } from './ended-commands.ts';

beforeEach(() => void takeEnded());
afterEach(async ({ task }) => {
  const hasFailed = task.result?.state === 'fail';
  if (hasFailed) await endRunning();
  const said = takeEnded();
  if (hasFailed) console.log(`commands of the failed test "${task.name}":\n${said.join('\n')}`);
});
