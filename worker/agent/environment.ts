/** The environment that every rank finds, beside its host's own and what -x passes on. */
import type { AgentOrder, LocalRanks, OrderedProgram, OrderedRank, Placement } from '../../control/messages/link.ts';
import { PMI_DESCRIPTOR } from '../../control/messages/guardian.ts';
import { portRangeText } from '../../control/port-range.ts';
import { type VisibleGpu, visibleGpus } from '../topology/gpus.ts';

export interface HostEnvironment {
  readonly order: AgentOrder;
  readonly placement: Placement;
  /** From AgentStart: MASTER_ADDR, MASTER_PORT. */
  readonly start: Readonly<Record<string, string>>;
  /** From AgentStart: of a machine that has other agents of the job, too. */
  readonly localRanks: LocalRanks | null;
  /** Path of the agent's Unix socket. */
  readonly agentSocket: string;
  /** A free TCP port of this host. */
  readonly rasPort: number;
}

/** What all ranks of a host have alike and -x may set otherwise. */
export function usualEnvironment({ start, rasPort }: HostEnvironment): Record<string, string> {
  return {
    // Several jobs on a host must not meet at NCCL's fixed default port; whoever sets it decides.
    ...(process.env['NCCL_RAS_ADDR'] === undefined ? { NCCL_RAS_ADDR: `localhost:${rasPort}` } : {}),
    ...start,
  };
}

/** What all ranks of a host have alike and only the job knows. */
export function jobEnvironment({ order, placement, agentSocket, localRanks }: HostEnvironment): Record<string, string> {
  const size = String(placement.rankCount);
  const localSize = String(localRanks?.all ?? placement.ranks.length);
  return {
    WORLD_SIZE: size,
    LOCAL_WORLD_SIZE: localSize,
    GROUP_RANK: String(placement.hostIndex),
    GROUP_WORLD_SIZE: String(placement.hostCount),
    TORCHELASTIC_RESTART_COUNT: String(order.epoch),
    TORCHELASTIC_MAX_RESTARTS: String(order.maxRestarts),
    TORCHELASTIC_RUN_ID: order.jobId,
    OMPI_COMM_WORLD_SIZE: size,
    OMPI_COMM_WORLD_LOCAL_SIZE: localSize,
    NCCLRUN_JOB_ID: order.jobId,
    NCCLRUN_SIZE: size,
    NCCLRUN_AGENT: agentSocket,
    NCCLRUN_UNIQUE_ID: order.uniqueId,
    ...(placement.pmi === undefined ? {} : pmiOfHost(size, localSize)),
    ...(order.portRange === null ? {} : { NCCLRUN_PORT_RANGE: portRangeText(order.portRange) }),
  };
}

/** What MPICH, MVAPICH and Intel MPI look for; MPI_* as MPICH's launcher has them. */
function pmiOfHost(size: string, localSize: string): Record<string, string> {
  return { PMI_FD: String(PMI_DESCRIPTOR), PMI_SIZE: size, PMI_SPAWNED: '0', MPI_LOCALNRANKS: localSize };
}

/** What -x passes on, but for what only the job knows: 'OMPI_*' of a surrounding mpirun must not hide the rank's own. */
export function programEnvironment(
  program: OrderedProgram,
  job: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(program.environment).filter(([name]) => job[name] === undefined));
}

/** What differs from rank to rank. */
export function rankEnvironment(
  { rank, program }: Pick<OrderedRank, 'rank' | 'program'>,
  localRank: number,
  runtimeDirectory: string,
  pmi: boolean,
): Record<string, string> {
  const global = String(rank);
  const local = String(localRank);
  return {
    RANK: global,
    LOCAL_RANK: local,
    TORCHELASTIC_ERROR_FILE: `${runtimeDirectory}/error-${rank}.json`,
    OMPI_COMM_WORLD_RANK: global,
    OMPI_COMM_WORLD_LOCAL_RANK: local,
    OMPI_COMM_WORLD_NODE_RANK: local,
    NCCLRUN_RANK: global,
    NCCLRUN_LOCAL_RANK: local,
    NCCLRUN_PROGRAM: String(program),
    ...(pmi ? { PMI_RANK: global, MPI_LOCALRANKID: local } : {}),
  };
}

const VISIBLE = 'CUDA_VISIBLE_DEVICES';

/**
 * What a rank may see, and which index its own GPU has among that. `gpus`: what a program sees here, which the host's own
 * CUDA_VISIBLE_DEVICES may have cut already; `program`: what -x passes on; `named`: the host's own CUDA_VISIBLE_DEVICES, from which a rank gets its
 * share also where this process finds none of the GPUs.
 */
export function gpuEnvironment(
  { visibleGpus: numbers, gpu }: Pick<OrderedRank, 'visibleGpus' | 'gpu'>,
  localRank: number,
  gpus: readonly VisibleGpu[],
  program: Readonly<Record<string, string>>,
  named?: string,
): Record<string, string> {
  if (gpus.length === 0) return numbers === null ? {} : shareOf(numbers, named);
  const given = numbers === null ? program[VISIBLE] : undefined;
  if (given !== undefined) return deviceEnvironment(localRank, visibleGpus(given).length);
  const seen = numbers ?? gpus.map((_, index) => index);
  const own = gpu === null ? -1 : seen.indexOf(gpu);
  const device = deviceEnvironment(own === -1 ? localRank : own, seen.length);
  if (numbers === null) return device;
  return { ...device, [VISIBLE]: numbers.map((number) => gpus[number]?.name ?? String(number)).join(',') };
}

function shareOf(numbers: readonly number[], named = ''): Record<string, string> {
  const names = named.split(',');
  const own = numbers.flatMap((number) => names[number] ?? []);
  return named === '' || own.length === 0 ? {} : { [VISIBLE]: own.join(',') };
}

/** More ranks than GPUs take turns. */
function deviceEnvironment(index: number, count: number): Record<string, string> {
  return count === 0 ? {} : { NCCLRUN_LOCAL_DEVICE: String(index % count) };
}
