/** Names of a host's hardware, as its agent sends them to the launcher. null: unknown, or the host has none. */
export interface HostHardware {
  readonly processor: string | null;
  /** Of the first GPU. */
  readonly gpu: string | null;
  /** Version of NVIDIA's driver. */
  readonly driver: string | null;
}

export const UNKNOWN_HARDWARE: HostHardware = { processor: null, gpu: null, driver: null };
