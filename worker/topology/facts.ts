/** Inputs of a machine's topology beside sysfs: facts from NVML, CUDA, verbs and the system's network. */

export interface NvLink {
  readonly active: boolean;
  /** PCI address at its other end as NVML writes it; null if NVML does not report it. */
  readonly remote: string | null;
}

export interface GpuFacts {
  /** PCI address, domain:bus:device.function. */
  readonly busId: string;
  /** As NVML numbers it, among all of the host. */
  readonly index: number;
  /** 90 is 9.0. */
  readonly computeCapability: number;
  /** Network cards may read and write its memory. */
  readonly gpuDirect: boolean;
  /** By number of the link; none where NVML is missing. */
  readonly links: readonly NvLink[];
  /** NVLink-C2C to the processor: links that are up, and what one of them carries, in MB/s and direction. */
  readonly c2c: { readonly count: number; readonly bandwidth: number } | null;
}

export interface NetFacts {
  readonly name: string;
  /** Directory of its device in sysfs, from the root of the file system; null: it has none. */
  readonly path: string | null;
  /** The port's number plus how many ports of the same card come before it. */
  readonly port: number;
  /** Mbit/s. */
  readonly speed: number;
  /** Microseconds in the form of the XML; null if unknown. */
  readonly latency: string | null;
  /** As it is to be written. */
  readonly guid: string;
  /** Connections at most. */
  readonly maxConnections: number;
  readonly gpuDirect: boolean;
}

export interface MachineFacts {
  /** By their index. */
  readonly gpus: readonly GpuFacts[];
  /** The index in this list is a net's device number. */
  readonly nets: readonly NetFacts[];
  /** As in `hostHash`; null: not to be written. */
  readonly hostHash: string | null;
  /** Of the processor, in NCCL's words. */
  readonly architecture: string;
  /** Rank that uses a GPU; undefined: none does. */
  readonly rankOf: (gpu: GpuFacts) => number | undefined;
}
