/** What an agent reports about its host's GPUs. */

export interface HostGpu {
  /** Index among the host's GPUs in the order of PCI addresses, as in nvidia-smi. */
  readonly index: number;
  /** PCI address in the form of sysfs; null if the driver does not report it. */
  readonly address: string | null;
}

/** A GPU error that NVIDIA's driver wrote to the kernel's log. */
export interface Xid {
  readonly code: number;
  /** As HostGpu.index. */
  readonly gpu: number;
  readonly address: string;
  /** Ranks of this job: the one whose process the driver names, else those that own the GPU. */
  readonly ranks: readonly number[];
  /** The process that the driver names, if it does. */
  readonly pid: number | null;
  /** The driver's words; may be empty. */
  readonly message: string;
  /** Milliseconds since 1970, by the host's clock. */
  readonly time: number;
}

/** A GPU, or a MIG instance, that another job holds. */
export interface BusyGpu {
  /** As HostGpu.index; null for a MIG instance. */
  readonly index: number | null;
  /** Its number among those that the host shows, as --include has it; null: it is not among them. */
  readonly slot: number | null;
  /** Of the instance; else of the GPU where the driver lists it. */
  readonly uuid: string | null;
  /** Null: ncclrun did not start its holder. */
  readonly job: string | null;
  /** The process that holds it; null: of another pid namespace, or unknown. */
  readonly pid: number | null;
  readonly user: string | null;
}

/** Free memory of a GPU, in bytes. */
export interface FreeGpuMemory {
  /** As HostGpu.index. */
  readonly gpu: number;
  readonly total: number;
  readonly free: number;
  /** Processes that the driver reports as holders of the rest, the largest first. */
  readonly holders: readonly MemoryHolder[];
}

export interface MemoryHolder {
  readonly pid: number;
  /** Null if the process is invisible here, as from inside a container. */
  readonly program: string | null;
  readonly user: string | null;
  /** Null if the driver does not report it. */
  readonly used: number | null;
}
