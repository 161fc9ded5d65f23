/** What a host's kernel and NVIDIA's driver have counted and measured of its NICs and GPUs, as far as any user may read it. */

/** One NIC, or one port of an InfiniBand or RoCE card. */
export interface NicErrors {
  /** `eth0`, `mlx5_0:1` */
  readonly nic: string;
  /** Since it came up, by the kernel's names; those that are 0 are left out. */
  readonly counters: Readonly<Record<string, number>>;
}

/** Null: the driver does not say. */
export interface GpuHealth {
  /** PCI address, as HostGpu has it. */
  readonly address: string;
  /** Of its SMs, in MHz. */
  readonly clock: number | null;
  readonly maxClock: number | null;
  /** Why its clocks are lower than they may be: a bit for each reason, as NVML has them. */
  readonly throttleReasons: number | null;
  /** ECC errors since the driver was loaded. */
  readonly corrected: number | null;
  readonly uncorrected: number | null;
  /** Lanes of its PCIe link. */
  readonly pcieWidth: number | null;
  readonly maxPcieWidth: number | null;
}

export interface HostHealth {
  readonly nics: readonly NicErrors[];
  /** As they were a moment after the last question: the driver may take its time. */
  readonly gpus: readonly GpuHealth[];
}

/** In one answer. */
export const MAX_HEALTH_NICS = 64;
export const MAX_HEALTH_GPUS = 64;
