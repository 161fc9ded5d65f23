/** What the planner knows of a communicator to be. */
import type { HostNic, HostVerbs } from '../../messages/nic.ts';
import type { HostHardware } from '../../messages/hardware.ts';
import type { GpuNic } from '../../plan/gpu-nics.ts';
import type { DeviceName, WrittenPlan } from '../../plan/types.ts';
import type { HostShape } from '../cluster/host-shape.ts';
import type { Decisions } from '../plan.ts';
import type { Preferences } from './preferences.ts';
import type { ChannelSet } from '../channel-set.ts';
import type { NetworkFacts } from '../network/network.ts';
import type { PlannedAggregators } from './network-reduction.ts';
import type { Corrections } from '../tuning/between-costs.ts';

/** A host whose topology is known (known-machine.ts). */
export interface HostMachine {
  /** Equal topologies have equal ones. */
  readonly key: string;
  /** GPUs at a PCI address (hexadecimal), of which each is for a rank of its own. Absent: one. */
  readonly gpusAt?: (busId: string) => number;
  /** The channels between the GPUs of these ranks, which are ascending. null: it does not have a GPU for each. Throws a TopologyError. */
  shape(ranks: readonly UsesGpu[], acrossHosts: boolean): HostShape | null;
  /** Which cards may use GPUDirect with the GPUs of these ranks, which are ascending. null: it does not have a GPU for each. Absent: nobody knows. */
  readonly gpuNics?: (ranks: readonly UsesGpu[]) => readonly GpuNic[] | null;
}

/** A communicator as its plan is made. */
export interface PlannedShape {
  readonly input: PlanInput;
  readonly channelSet: ChannelSet;
  readonly preferences: Preferences;
  /** Between the hosts; null: there is one. */
  readonly network: NetworkFacts | null;
}

/** What was measured on a host, or between hosts (measured/tables.ts). */
export interface HostTables {
  /** The same with the variants that were measured to be the fastest; or with all of them, to be measured. */
  refine(planned: Decisions, shape: PlannedShape): Decisions;
  /** How far the model is off between such hosts, by what was measured with more or fewer of them. */
  corrections(device: DeviceName, shape: PlannedShape): Corrections;
}

export interface PlannedHost {
  readonly name: string;
  /** Numeric address at which other hosts reach this one. */
  readonly address: string;
  /** Its network interfaces that connections may use, the best first; absent if nobody asked for them. */
  readonly nics?: readonly HostNic[];
  /** Its InfiniBand and RoCE ports; absent or null if nobody asked for them. */
  readonly verbs?: HostVerbs | null;
  /** Cores the ranks may run on. */
  readonly cores: number;
  /** Topology of the host; null if it is not wanted, or if detection failed. */
  readonly machine: HostMachine | null;
  /** Of hosts among several; absent if they did not report it. */
  readonly hardware?: HostHardware;
  /** Tables of measured times, among several hosts the first one's; absent if there are none, or if the caller does not read them. */
  readonly tables?: HostTables | null;
}

export interface PlannedPeer {
  /** Index into `hosts`. */
  readonly host: number;
  readonly listenPort: number;
  readonly device: 'host' | 'cuda';
  readonly cudaDevice: number;
  /** Of the GPU, hexadecimal; '0' on the host device. */
  readonly busId: string;
  /** Of the GPU; 0 on the host device. */
  readonly smCount: number;
  /** That a launch of the rank may have (ncclConfig_t's maxCTAs, NCCL_MAX_CTAS, NCCLRUN_MAX_SMS); 0: any number. Of the host device it means nothing. */
  readonly maxChannels: number;
  /** Communicators that its process has on the GPU already; 0 on the host device. */
  readonly communicators: number;
  /** Equal for ranks of one process. */
  readonly pidHash: string;
}

export type UsesGpu = Pick<PlannedPeer, 'device' | 'busId'>;

export interface PlanInput {
  /** Hosts with at least one rank of the communicator. */
  readonly hosts: readonly PlannedHost[];
  /** In rank order. */
  readonly peers: readonly PlannedPeer[];
  /** 32 hexadecimal digits, random. */
  readonly token: string;
  /** Those of the job (--collnet); absent or null: it has none. */
  readonly aggregators?: PlannedAggregators | null;
}

/** By host: its ranks, ascending. */
export function rankNumbersByHost({ hosts, peers }: Members): number[][] {
  const members: number[][] = hosts.map(() => []);
  peers.forEach(({ host }, rank) => members[host]?.push(rank));
  return members;
}

/** By bus id: how many of the ranks use it. For ranks of one host; ranks that share a GPU share its SMs. */
export function rankCountByGpu(peers: readonly PlannedPeer[]): Map<string, number> {
  const ranks = new Map<string, number>();
  for (const { busId } of peers) ranks.set(busId, (ranks.get(busId) ?? 0) + 1);
  return ranks;
}

export interface Members {
  readonly hosts: readonly unknown[];
  readonly peers: readonly { readonly host: number }[];
}

/** A plan given by the user, and where from. */
export interface GivenPlan {
  readonly source: string;
  readonly plan: WrittenPlan;
}
