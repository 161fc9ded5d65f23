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
