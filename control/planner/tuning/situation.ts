/** What predictions depend on, and what they say. */
import type { DeviceName } from '../../plan/types.ts';
import type { Agreement } from '../cluster/agreement.ts';
import type { NetworkReduction } from '../input/network-reduction.ts';
import type { BetweenCosts, Corrections } from './between-costs.ts';

/** What all predictions for one communicator depend on. */
export interface Situation {
  readonly ranks: number;
  readonly hosts: number;
  /** 0: hosts have unlike numbers of them. */
  readonly ranksOfEachHost: number;
  readonly ring: Agreement;
  readonly tree: Agreement;
  readonly collnet: Agreement | null;
  /** GB/s that each GPU sends to the other GPUs of its host together; 0 if each host has a single GPU. */
  readonly linkBandwidth: number;
  /** Number of blocks, thus SMs, that an operation may use on each GPU. */
  readonly blocks: number;
  /** Bytes per microsecond of each host's NICs together, by the hosts' topologies; null: unknown. */
  readonly nicRate: number | null;
  /** The same of the fastest port. */
  readonly linkRate: number | null;
  /** How the hosts reach each other; absent: there is one, or nobody asks. */
  readonly between?: BetweenTerms;
}

/** How ranks of several hosts reach each other. */
export interface BetweenTerms {
  readonly device: DeviceName;
  readonly costs: BetweenCosts;
  /** Of protocol LL; null: the device or the network has it not. */
  readonly llCosts: BetweenCosts | null;
  /** What measurements on the same kind of hosts and network say of the model. */
  readonly corrections: Corrections;
  /** Bytes per microsecond of each host's NICs together; null: unknown, or one machine plays the hosts. */
  readonly nicRate: number | null;
  /** The same of the one by which ranks reach aggregators. */
  readonly linkRate: number | null;
  readonly reduction: NetworkReduction;
  /** Ranks that share a core; at least 1. */
  readonly load: number;
  /** Channels of rings and rails, and of all other algorithms. */
  readonly channels: number;
  readonly pairChannels: number;
}

/**
 * Time = microseconds + bytes / bytesPerMicrosecond + fill, which grows linearly up to fill.microseconds at fill.bytes: the time until all channels are
 * busy. 1 GB/s is 1000 bytes per microsecond. Bytes are those of the larger of a rank's two buffers.
 */
export interface Prediction {
  readonly microseconds: number;
  readonly bytesPerMicrosecond: number;
  readonly fill: { readonly microseconds: number; readonly bytes: number } | null;
}
