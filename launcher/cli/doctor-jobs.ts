/** The small jobs by which doctor asks hosts: their users, ports and remote shells are those of a job of the user. */
import type { PortRange } from '../../control/port-range.ts';
import type { JobRequest, Reporter } from '../model/types.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import { runReported } from './launch.ts';

/** A host that has not answered by then is in trouble. */
const LIMIT_SECONDS = 30;

export interface DoctorJobs {
  /** Ports on which the user's jobs may listen; null: any. */
  readonly portRange: PortRange | null;
  /** One rank on each of these hosts of the allocation, to its end. */
  run(hosts: readonly string[], command: readonly string[], reporter: Reporter, options?: RunOptions): Promise<void>;
}

export interface RunOptions {
  readonly ranksPerHost?: number;
  /** NAME=value, beside those of the user's job. */
  readonly exports?: readonly string[];
  readonly limitSeconds?: number;
}

/** `base`: of a job of the user. `startAgent`: agents that are there already; without it each job starts its own. */
export function doctorJobs(base: JobRequest, startAgent?: StartAgent): DoctorJobs {
  process.setMaxListeners(0); // each job at the same time listens to signals
  return {
    portRange: base.portRange,
    run: async (hosts, command, reporter, options = {}) => {
      await runReported(requestOfHosts(base, hosts, command, options), reporter, { startAgent });
    },
  };
}

function requestOfHosts(
  base: JobRequest,
  hosts: readonly string[],
  command: readonly string[],
  { ranksPerHost = 1, exports = [], limitSeconds = LIMIT_SECONDS }: RunOptions,
): JobRequest {
  const isNamed = base.hostfile !== null || base.hostList !== null || base.manager !== null;
  const [first] = base.programs;
  const program = {
    argv: command,
    ranks: hosts.length * ranksPerHost,
    ranksPerHost,
    exports: [...(first?.exports ?? []), ...exports],
    workingDirectory: first?.workingDirectory ?? null,
    hostList: null,
  };
  return {
    ...base,
    programs: [program],
    include: isNamed ? hosts.join('@') : base.include,
    exclude: null,
    timeoutSeconds: limitSeconds,
    spawnTimeoutSeconds: null,
    hangAfterSeconds: 0,
    maxRestarts: 0,
    shrinks: false,
    recordsFailures: false,
    recordsAll: false,
    stdin: { type: 'none' },
    live: false,
    mergeStderr: false,
    outputFiles: [],
    mapBy: { by: 'slot' },
    rankBy: null,
    bindTo: 'none',
    reportBindings: false,
    isolateGpus: false,
    busyGpus: 'ignore',
    oversubscribe: true,
    planFile: null,
    aggregators: null,
  };
}
