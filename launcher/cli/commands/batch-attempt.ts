/** `ncclrun batch-attempt`: a launcher of a batch's tasks, as the scheduler starts it. */
import { Socket } from 'node:net';
import { serveAttempts } from '../../batch/attempt/serve-attempts.ts';
import { StandingAgents } from '../../remote/standing-agents.ts';
import { usageError } from '../../model/usage-error.ts';
import { run } from './run.ts';

/** A socket to the scheduler. */
const SCHEDULER_FD = 3;

/** Throws a FailureError (usage) where no scheduler has started it. */
export async function batchAttempt(): Promise<number> {
  const agents = new StandingAgents();
  try {
    return await serveAttempts(scheduler(), (argv, reporter) => run(argv, { agents, reporters: [reporter] }));
  } finally {
    await agents.close();
  }
}

function scheduler(): Socket {
  try {
    return new Socket({ fd: SCHEDULER_FD });
  } catch {
    throw usageError('there is no scheduler to get attempts from', 'ncclrun batch starts its launchers by itself');
  }
}
