/** What an agent tells of its host's GPUs. */

export interface HostGpu {
  /** Among all of the host, by PCI address, as nvidia-smi counts them. */
  readonly index: number;
  /** PCI address as sysfs writes it; null: the driver does not say. */
  readonly address: string | null;
}

/** An error of a GPU that NVIDIA's driver has told the kernel's log. */
export interface Xid {
  readonly code: number;
  /** As HostGpu.index. */
  readonly gpu: number;
  readonly address: string;
  /** Of this job: whose process the driver names, else whose own GPU it is. */
  readonly ranks: readonly number[];
  /** The process that the driver names, if it does. */
  readonly pid: number | null;
  /** The driver's words; may be empty. */
  readonly message: string;
  /** Milliseconds since 1970, by the host's clock. */
  readonly time: number;
}

/** How much of a GPU's memory was free, in bytes. */
export interface FreeGpuMemory {
  /** As HostGpu.index. */
  readonly gpu: number;
  readonly total: number;
  readonly free: number;
  /** Processes that have the rest, as far as the driver says; the largest first. */
  readonly holders: readonly MemoryHolder[];
}

export interface MemoryHolder {
  readonly pid: number;
  /** Null: there is no such process here, as seen from a container. */
  readonly program: string | null;
  readonly user: string | null;
  /** Null: the driver does not say. */
  readonly used: number | null;
}
