/** A port of an InfiniBand or RoCE card that is active, as its host's agent sends it to the launcher. */
export interface HostVerbsPort {
  /** Of the card: "mlx5_0". */
  readonly card: string;
  /** From 1. */
  readonly port: number;
  readonly linkLayer: 'InfiniBand' | 'Ethernet';
  /** 0: unknown. */
  readonly speedMbps: number;
  /** Bytes. */
  readonly mtu: number;
  /** Real path of its device in /sys; null: it has none. */
  readonly pciPath: string | null;
  readonly firmware: string;
  /** The addresses that it has, by their index in its table. */
  readonly gids: readonly HostGid[];
}

export interface HostGid {
  readonly index: number;
  /** As an IPv6 address. */
  readonly gid: string;
  /** Of RoCE; null: unknown, or InfiniBand. */
  readonly version: 1 | 2 | null;
}

/** A port as `ncclrun topo` shows it, whether active or not. */
export interface FoundVerbsPort extends HostVerbsPort {
  /** "active", or what it is instead: "down", "init". */
  readonly state: string;
}

/** All ports of a host. */
export interface FoundVerbs {
  readonly ports: readonly FoundVerbsPort[];
  /** Why no port is known: a clause without its end; null: there are some. */
  readonly problem: string | null;
}

/** Of a host without cards: it has no part in why a job does not use InfiniBand. */
export const NO_VERBS_DEVICES = 'the kernel has no InfiniBand devices';

/** What InfiniBand there is on a host. */
export interface HostVerbs {
  readonly ports: readonly HostVerbsPort[];
  /** Why there are none: a clause without its end; null: there are some. */
  readonly problem: string | null;
}

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
