/** What the planner knows of a communicator to be. */
export interface PlannedHost {
  readonly name: string;
  /** Numeric address that engines of other hosts connect to. */
  readonly address: string;
  /** Cores the ranks may run on. */
  readonly cores: number;
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
  readonly multiprocessors: number;
  /** That a launch of the rank may have (ncclConfig_t's maxCTAs, NCCL_MAX_CTAS); 0: any number. Of the host device it means nothing. */
  readonly mostChannels: number;
  /** Equal for ranks of one process. */
  readonly pidHash: string;
}

export interface PlanInput {
  /** Hosts with at least one rank of the communicator. */
  readonly hosts: readonly PlannedHost[];
  /** In rank order. */
  readonly peers: readonly PlannedPeer[];
  /** 32 hexadecimal digits, random. */
  readonly token: string;
}
