/** Number of sockets of a connection, and of threads that move them. */
import { MAX_SOCKET_THREADS, MAX_SOCKETS } from '../../plan/network.ts';
import type { PlanNetwork } from '../../plan/network.ts';
import type { Environment } from '../input/variables.ts';
import { wholeNumber } from '../input/variables.ts';

/**
 * What one core moves through a socket, in Mbit/s: it sends 3 to 5 GB/s and receives 2.5 to 4 GB/s, copying and protocol included. A
 * slower NIC is full with one socket on the calling thread, which needs no hand-over between threads.
 */
const CORE_MBPS = 25_000;
/** From here on one core does not fill the NIC. */
const FAST_MBPS = 40_000;
/** NCCL's default of both variables: choose by the NIC. */
const AUTOMATIC = -2;
const MAX_PRODUCT = 64;

interface SocketFacts {
  /** Of the slowest NIC that a connection uses; 0: unknown. */
  readonly speedMbps: number;
  /** Of the host with fewest. */
  readonly coresPerRank: number;
  /** Kernels wait for the network: each rank has connections on many channels, and a thread of its own that moves them. */
  readonly onGpus: boolean;
}

/** NCCL_SOCKET_NTHREADS threads with NCCL_NSOCKS_PERTHREAD sockets each, 64 sockets together. Throws UnplannableError. */
export function socketsOf(
  { speedMbps, coresPerRank, onGpus }: SocketFacts,
  environment: Environment,
): Pick<PlanNetwork, 'sockets' | 'socketThreads'> {
  const wished = asked(environment, 'NCCL_SOCKET_NTHREADS', 0, MAX_SOCKET_THREADS);
  const wishedPerThread = asked(environment, 'NCCL_NSOCKS_PERTHREAD', 1, MAX_PRODUCT);
  // The threads share the channels' connections: one socket of each is enough.
  if (onGpus && wished === null && wishedPerThread === null)
    return { sockets: 1, socketThreads: threadsOfGpu(coresPerRank) };
  const threads = wished ?? threadsFor(speedMbps, coresPerRank);
  const perThread = wishedPerThread ?? 1;
  // Without threads the caller moves the sockets.
  return { sockets: Math.min(MAX_SOCKETS, Math.max(1, threads) * perThread), socketThreads: threads };
}

/** Half of the cores at most are theirs. */
const GPU_THREADS = 8;
function threadsOfGpu(coresPerRank: number): number {
  return Math.min(GPU_THREADS, Math.floor(coresPerRank / 2));
}

/** As many as fill the NIC, where there are cores for them beside the rank's own. */
function threadsFor(speedMbps: number, coresPerRank: number): number {
  if (speedMbps < FAST_MBPS) return 0;
  const wanted = Math.min(MAX_SOCKET_THREADS, Math.ceil(speedMbps / CORE_MBPS));
  return Math.max(0, Math.min(wanted, Math.floor(coresPerRank) - 1));
}

function asked(environment: Environment, name: string, min: number, max: number): number | null {
  const isAutomatic = environment[name]?.trim() === String(AUTOMATIC);
  return isAutomatic ? null : wholeNumber(environment, name, min, max);
}
