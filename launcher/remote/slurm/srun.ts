/** srun, for steps of one task on each of some hosts of the job. */
import { messageOf } from '../../../control/message-of.ts';
import type { HostSlots } from '../../model/types.ts';
import { startTool } from '../../local/host.ts';
import { makeConnectionError } from '../shell/connection-error.ts';
import { gpusOption } from './step-gpus.ts';

/** What srun takes from the job as wishes for each of its tasks, and would give the one task of a host, the agent, no more than that. */
const OF_TASKS = [
  'SLURM_CPUS_PER_TASK',
  'SRUN_CPUS_PER_TASK',
  'SLURM_GPUS_PER_TASK',
  'SLURM_NTASKS_PER_CORE',
  'SLURM_NTASKS_PER_GPU',
  'SLURM_NTASKS_PER_SOCKET',
  'SLURM_EXACT',
  'SLURM_CPU_BIND',
];

export type Tool = ReturnType<typeof startTool>;

interface StepOptions {
  readonly hosts: readonly HostSlots[];
  /** What runs on each. */
  readonly task: readonly string[];
  /** A task that fails ends the others. */
  readonly together: boolean;
  /** What every task has on its stdin; null: what is sent to the tool. */
  readonly input: string | null;
}

/** @throws ConnectionError if srun cannot be started */
export function startStep({ hosts, task, together, input }: StepOptions): Tool {
  const words = [
    'env',
    ...OF_TASKS.flatMap((name) => ['-u', name]),
    'srun',
    '--overlap',
    `--nodes=${hosts.length}`,
    `--ntasks=${hosts.length}`,
    '--ntasks-per-node=1',
    `--nodelist=${hosts.map(({ name }) => name).join(',')}`,
    ...gpusOption(process.env),
    '--job-name=ncclrun',
    '--export=ALL',
    '--cpu-bind=none',
    `--kill-on-bad-exit=${together ? 1 : 0}`,
    '--wait=0',
    '--no-kill',
    '--quiet',
    ...task,
  ];
  try {
    return startTool(input === null ? words : ['sh', '-c', 'exec "$@" <"$0"', input, ...words], []);
  } catch (error) {
    const detail = `srun cannot be started: ${messageOf(error)}`;
    throw makeConnectionError('shell', detail, 'inside a Slurm job srun must be on the PATH');
  }
}
