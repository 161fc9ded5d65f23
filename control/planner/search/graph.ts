/** What a search finds: channels through one machine, all with the same bandwidth. */
import type { PathType } from '../machine/path.ts';

/**
 * How a channel goes through a host, from where it comes in:
 *   ring           NIC → a → b → … → x → NIC; inside one host x → a
 *   balancedTree   NIC → a → b → … → x, and half each from a and from b → NIC
 *   splitTree      NIC → a → b → … → x, and from b → NIC
 *   tree           NIC → a → b → … → x, and from a → NIC; CollNet's chain too
 *   collnetDirect  NIC → a → NIC, and a ↔ each other GPU
 */
export const PATTERN_NAMES = ['ring', 'balancedTree', 'splitTree', 'tree', 'collnetDirect'] as const;
export type Pattern = (typeof PATTERN_NAMES)[number];

export interface FoundChannel {
  /** Indices in the machine's list of GPUs. */
  readonly order: readonly number[];
  /** Where the channel comes in and goes out: indices in the machine's list of nets; null inside one host. */
  readonly nets: readonly [number, number] | null;
}

/** What holds for every channel of a graph. */
export interface Terms {
  /** Of a channel between GPUs and to the NICs, MB/s. */
  readonly inside: number;
  readonly between: number;
  /** The farthest paths that were allowed. */
  readonly typeInside: PathType;
  readonly typeBetween: PathType;
  /** All channels have the same order. */
  readonly sameChannels: boolean;
  /** 0: in and out by the same NIC; 1: by any; 2: channels in pairs, which swap their NICs. */
  readonly crossNic: 0 | 1 | 2;
  /** Microseconds, of the NIC. */
  readonly latencyBetween: number;
}

export interface Graph extends Terms {
  readonly pattern: Pattern;
  readonly channels: readonly FoundChannel[];
}

/** Channels × what the slower of its two parts carries, MB/s. */
export function totalBandwidth(channels: number, { inside, between }: Terms, acrossHosts: boolean): number {
  return channels * (acrossHosts ? Math.min(inside, between) : inside);
}
