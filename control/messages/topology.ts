/** What a host has that ranks can be placed on; part of its hello where the job asks for it. */

/** A physical core with those of its hardware threads that the agent may run on. */
export interface Core {
  readonly cpus: readonly number[];
  /** Number of its NUMA node. */
  readonly numa: number;
}

export interface Gpu {
  /** CPUs near it that the agent may run on; empty where the host does not say. */
  readonly cpus: readonly number[];
  /** Number of its NUMA node; null where the host does not say. */
  readonly numa: number | null;
}

/** Only what the agent itself may use: a container's or a batch system's share, not the whole machine. */
export interface HostTopology {
  /** By their first CPU. At least one. */
  readonly cores: readonly Core[];
  /** As CUDA numbers them for a program that starts there. */
  readonly gpus: readonly Gpu[];
}
