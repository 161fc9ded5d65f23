/** Set-up of each file of tests that run commands: a failed test shows what they said. */
import { afterEach, beforeEach } from 'vitest';
import { takeEnded } from './ended-commands.ts';

beforeEach(() => void takeEnded());
afterEach(({ task }) => {
  const said = takeEnded();
  if (task.result?.state === 'fail') console.log(`commands of the failed test "${task.name}":\n${said.join('\n')}`);
});
