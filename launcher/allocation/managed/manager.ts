/** Which resource manager has given this process hosts, and what it says of them in the environment. */
import { FailureError } from '../../model/failure-error.ts';
import { jobDetails } from './job-details.ts';
import { needsJobDetails } from './slurm-gpus.ts';

export const managers = ['slurm', 'pbs', 'lsf'] as const;
export type ManagerName = (typeof managers)[number];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Allocated by it. */
export interface Manager {
  readonly name: ManagerName;
  readonly environment: Environment;
  /** What Slurm says about the job; null where nobody needs it, or it did not answer. */
  readonly details: string | null;
}

/** What it is called in sentences. */
export const managerTitles: Readonly<Record<ManagerName, string>> = { slurm: 'Slurm', pbs: 'PBS', lsf: 'LSF' };

const signs: Readonly<Record<ManagerName, (environment: Environment) => boolean>> = {
  slurm: (environment) => has(environment, 'SLURM_JOB_ID') && has(environment, 'SLURM_JOB_NODELIST'),
  pbs: (environment) => has(environment, 'PBS_NODEFILE'),
  lsf: (environment) => lsfVariables.some((name) => has(environment, name)),
};

const lsfVariables = ['LSB_MCPU_HOSTS', 'LSB_HOSTS'] as const;

function has(environment: Environment, name: string): boolean {
  return (environment[name] ?? '') !== '';
}

/**
 * `wanted`: --resource-manager. Null: none, or none is wanted. Throws a FailureError (usage) for one that is wanted and not there. `askSlurm`: about a
 * job, by its number.
 */
export function findManager(wanted: string, environment: Environment, askSlurm = jobDetails): Manager | null {
  if (wanted === 'none') return null;
  if (wanted === 'auto' || wanted === 'slurm') refuseHeterogeneous(environment);
  const name = managers.find((one) => (wanted === 'auto' || wanted === one) && signs[one](environment));
  if (name !== undefined) {
    const asks = name === 'slurm' && needsJobDetails(environment);
    return { name, environment, details: asks ? askSlurm(environment['SLURM_JOB_ID'] ?? '') : null };
  }
  if (wanted === 'auto') return null;
  throw new FailureError({
    type: 'usage',
    message: `--resource-manager ${wanted}: this is not inside an allocation of ${wanted}`,
    remedy: 'start the job inside of one, or leave the option out',
  });
}

/** Each component of such a job is a job of its own, with variables of its own. Throws a FailureError (usage). */
function refuseHeterogeneous(environment: Environment): void {
  const components = environment['SLURM_HET_SIZE'] ?? environment['SLURM_PACK_SIZE'] ?? '';
  if (!(Number(components) > 1)) return;
  throw new FailureError({
    type: 'usage',
    message: `this is a heterogeneous Slurm job of ${components} components (SLURM_HET_SIZE), and ncclrun uses the hosts of one job`,
    remedy:
      'ask for all hosts in one component; or reach the hosts of all by ssh: --resource-manager none -H HOSTS, as SLURM_JOB_NODELIST_HET_GROUP_0 and the others name them',
  });
}
