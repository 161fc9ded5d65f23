/** One ncclrun starts all ranks: started by srun once for each task, it would start all of them as often. */
import { usageError } from '../model/usage-error.ts';

/** Throws a FailureError (usage), in all tasks alike. A batch script, the only task of a step and a rank of a job of ours may start jobs. */
export function refuseTask(environment: NodeJS.ProcessEnv): void {
  const { SLURM_PROCID: task = '', SLURM_JOB_ID: job = '', SLURM_STEP_NUM_TASKS: tasks = '' } = environment;
  if (job === '' || environment['NCCLRUN_JOB_ID'] !== undefined || !/^(0|[1-9][0-9]*)$/.test(task)) return;
  if (task === '0' && !(Number(tasks) > 1)) return;
  throw usageError(
    `this is task ${task} of ${tasks === '' ? 'several' : tasks} that srun has started, and one ncclrun starts all ranks`,
    'leave srun out: in a batch script or a shell of salloc write ncclrun PROGRAM, which takes the hosts and slots of the Slurm job',
  );
}
