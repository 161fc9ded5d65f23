/** Cores and GPUs of a host for the mapping; part of the hello if the job asks for it. */

/** A physical core with those of its hardware threads that the agent may run on. */
export interface Core {
  readonly cpus: readonly number[];
  /** Number of its NUMA node. */
  readonly numa: number;
}

export interface Gpu {
  /** CPUs near it on which the agent may run; empty if the host does not report them. */
  readonly cpus: readonly number[];
  /** Number of its NUMA node; null if the host does not report it. */
  readonly numa: number | null;
}

/** The resources that the agent itself may use: a container's or a batch system's share, not the whole machine. */
export interface HostTopology {
  /** At least one, in the order of their first CPUs. */
  readonly cores: readonly Core[];
  /** In the order of CUDA's device numbers for a program that starts there. */
  readonly gpus: readonly Gpu[];
}
