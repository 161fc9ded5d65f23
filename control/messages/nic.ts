/** A network interface of a host with an address, as its agent sends it to the launcher. */
export interface HostNic {
  /** Of the interface: "eth0". */
  readonly name: string;
  /** Numeric; a link-local one with its scope. */
  readonly address: string;
  /** Bits of the address that its subnet has in common. */
  readonly prefixLength: number;
  /** 0: unknown. */
  readonly speedMbps: number;
  /** Real path of its device in /sys; null: it has none. */
  readonly pciPath: string | null;
  /** Neither a device nor a bond of some is behind it: a bridge, one end of a pair. */
  readonly isVirtual: boolean;
  /** NCCL_SOCKET_IFNAME asks for it. */
  readonly isNamed: boolean;
}
