/** The network of a CommPlan: NICs, and the rules by which connections use them. */
import { NO_NIC } from './layout.ts';
import type { CommPlan, TransportName } from './types.ts';

/** The backend by which all hosts of a communicator reach each other, and how the socket backend uses it. */
export interface PlanNetwork {
  readonly name: string;
  /** Of each connection, beside the one that its caller moves where there are threads. */
  readonly sockets: number;
  /** Helper threads of each process. */
  readonly socketThreads: number;
}

/** With the caller's own, a connection has 64 sockets at most. */
export const MAX_SOCKETS = 63;
export const MAX_SOCKET_THREADS = 16;

/** One port of a network adapter that the plan uses. Its index is its position among those of its host; NICs of one index are a rail. */
export interface PlanNic {
  readonly name: string;
  /** Numeric; a link-local one with its scope. */
  readonly address: string;
  /** Number of the port on its card; 0 for an interface. */
  readonly port: number;
  /** 0: unknown. */
  readonly speedMbps: number;
  /** Real path of its device in /sys. null: it has none, or nobody knows it; the engine does not. */
  readonly pciPath: string | null;
  /** The NIC reads and writes GPU memory. */
  readonly gpuDirect: boolean;
  /** Why it does, or does not. */
  readonly gpuDirectReason: string;
  /** To the GPUs of the host's ranks; empty where the host's topology is not known. */
  readonly gpuPaths: readonly GpuPath[];
}

interface GpuPath {
  readonly rank: number;
  /** NCCL's word: PIX, PXB, PHB, SYS. */
  readonly type: string;
  /** MB/s. */
  readonly bandwidth: number;
}

const NETWORKS: readonly TransportName[] = ['socket', 'ib', 'plugin'];

export function isNetwork(transport: TransportName): boolean {
  return NETWORKS.includes(transport);
}

/** Whether a connection of the plan may go over a NIC. */
export function usesNetwork({ hosts, peers, transports }: NetworkUse): boolean {
  return hosts.length > 1 || (peers.length > 1 && isNetwork(transports.sameHost));
}
type NetworkUse = Pick<CommPlan, 'transports'> & {
  readonly hosts: readonly unknown[];
  readonly peers: readonly unknown[];
};

/**
 * Index of the first NIC, at both ends, of the pair connections by which a rank receives. The receiver decides, so that both ends agree and a
 * channel stays on one rail. Where a host has more NICs than ranks each rank has a part of them, of neighbours by PCI address and so of the
 * ports of a card, and on GPUs the channels of a pair take these in turn (PlanView::pairNic). Else the ranks take the NICs in turn.
 */
export function pairNicOf(localIndex: number, ranks: number, nics: number): number | null {
  if (nics === 0) return null;
  return nics > ranks ? Math.floor((localIndex * nics) / ranks) : localIndex % nics;
}

/** As the engine has it. */
export function nicNumber(nic: number | null): number {
  return nic ?? NO_NIC;
}

export function nicFromNumber(number: number): number | null {
  return number === NO_NIC ? null : number;
}
