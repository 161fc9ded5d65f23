/** `ncclrun slurm-attempt POLICY TASK ATTEMPT WORDS`: one attempt of a batch's task in its allocation, as a batch script starts it. */
import * as v from 'valibot';
import { runInSlurm } from '../../batch/slurm/attempt/run-in-slurm.ts';
import { attemptPolicy } from '../../batch/slurm/script/attempt-order.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { ourLine } from '../../report/summary.ts';
import { makePaint } from '../../text/colour.ts';
import { run } from './run.ts';

/** Throws a FailureError as run does. */
export async function slurmAttempt([
  policy = '',
  task = '',
  attempt = '',
  ...words
]: readonly string[]): Promise<number> {
  return await runInSlurm({
    policy: v.parse(attemptPolicy, JSON.parse(policy)),
    task: Number(task),
    attempt: Number(attempt),
    words,
    run,
    requeue,
    say,
  });
}

async function requeue(): Promise<void> {
  const { runTool } = await import('../../batch/slurm/tools/tool.ts');
  const { ok, sentence } = await runTool('scontrol', ['requeue', process.env['SLURM_JOB_ID'] ?? '']);
  if (!ok) await say(`Slurm does not queue the task again: ${sentence}`);
}

async function say(text: string): Promise<void> {
  await standardStreams().stderr.printPainted(ourLine(text, makePaint(false, process.env)));
}
