/** A host that has ranks of a communicator. */
export interface CommHost {
  readonly name: string;
  /**
   * The NICs by which it and the communicator's other hosts reach each other; every host has as many, and those of one index are in one
   * subnet. None where the communicator is on one host.
   */
  readonly nics: readonly CommNic[];
}

/** A port of a network adapter. */
export interface CommNic {
  /** Of the interface or the card: `eth0`. */
  readonly name: string;
  /** Numeric IPv4 or IPv6 address; a link-local one with its scope. */
  readonly address: string;
  /** Number of the port on its card; 0 for an interface. */
  readonly port: number;
  /** Mbit/s; null if the system does not tell. */
  readonly speedMbps: number | null;
  /** It reads and writes GPU memory. */
  readonly gpuDirect: boolean;
}
