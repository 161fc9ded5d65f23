/** Predicted latency and bandwidth of rings, trees and CollNet, after NCCL's model. */
import type { CollectiveName, ProtocolName } from '../../plan/types.ts';
import type { Agreement } from '../cluster/agreement.ts';
import { distance } from '../machine/path.ts';
import { BASE_LATENCY, LL_BETWEEN_HOSTS, STEP_LATENCY } from './constants.ts';
import type { Generation, NetworkAlgorithm } from './constants.ts';

/** What all predictions for one communicator depend on. */
export interface Situation {
  readonly ranks: number;
  readonly hosts: number;
  /** 0: hosts have unlike numbers of them. */
  readonly ranksOfEachHost: number;
  readonly generation: Generation;
  readonly processors: 'intel' | 'amd' | 'other';
  readonly ring: Agreement;
  readonly tree: Agreement;
  /** True if some host has a plain tree instead of a balanced one. */
  readonly hasPlainTree: boolean;
  readonly collnet: Agreement | null;
  /** GB/s that each GPU sends to the other GPUs of its host together; 0 if each host has a single GPU. */
  readonly linkBandwidth: number;
  /** Number of blocks, thus SMs, that an operation may use on each GPU. */
  readonly blocks: number;
}

/**
 * Time = microseconds + bytes / bytesPerMicrosecond + fill, which grows linearly up to fill.microseconds at fill.bytes: the time until all channels are
 * busy. 1 GB/s is 1000 bytes per microsecond.
 */
export interface Prediction {
  readonly microseconds: number;
  readonly bytesPerMicrosecond: number;
  readonly fill: { readonly microseconds: number; readonly bytes: number } | null;
}

/** Returns null if there is no such variant. `bytes` of a prediction are those of the larger of a rank's two buffers. */
export function predictNetwork(
  collective: CollectiveName,
  algorithm: NetworkAlgorithm,
  protocol: ProtocolName,
  situation: Situation,
): Prediction | null {
  const graph = graphOf(algorithm, situation);
  const steps = stepsOf(collective, situation.ranks);
  if (graph === null || steps === null || situation.ranks < 2) return null;
  if (algorithm !== 'ring' && collective !== 'allReduce') return null;
  if (algorithm === 'collnet' && (protocol !== 'simple' || situation.hosts < 2)) return null;
  if (protocol === 'll128' && !storesLinesAtomically(graph, situation)) return null;
  const busBandwidth = busBandwidthOf(algorithm, protocol, graph, situation);
  const ratio = algorithm === 'ring' ? situation.ranks / steps : 0.5;
  return {
    microseconds: latencyOf(collective, algorithm, protocol, graph, situation),
    bytesPerMicrosecond: busBandwidth * ratio * 1000,
    fill: null,
  };
}

function graphOf(algorithm: NetworkAlgorithm, { ring, tree, collnet }: Situation): Agreement | null {
  if (algorithm === 'collnet') return collnet;
  return algorithm === 'ring' ? ring : tree;
}

/** Number of steps that a chunk takes around a ring. Returns null if rings do not implement the collective. */
function stepsOf(collective: CollectiveName, ranks: number): number | null {
  switch (collective) {
    case 'allReduce':
      return 2 * (ranks - 1);
    case 'allGather':
    case 'reduceScatter':
      return ranks - 1;
    case 'broadcast':
    case 'reduce':
      return ranks;
    default:
      return null;
  }
}

/** True if all links store lines of 128 bytes atomically, as LL128 requires. */
function storesLinesAtomically({ typeInside, typeBetween }: Agreement, { generation, hosts }: Situation): boolean {
  const farthest = generation.name === 'Hopper' || generation.name === 'Blackwell' ? 'PXN' : 'PXB';
  const isNear = hosts === 1 || distance(typeBetween) <= distance(farthest);
  return isNear && distance(typeInside) <= distance('NVB');
}

/** Bus bandwidth in GB/s. */
function busBandwidthOf(
  algorithm: NetworkAlgorithm,
  protocol: ProtocolName,
  { channels, inside, between }: Agreement,
  { hosts, generation, processors, hasPlainTree }: Situation,
): number {
  const column = Math.min(hosts, 3) - 1;
  // Between two hosts the chains of a tree inside the hosts are the bottleneck, because up and down use different links.
  const perChannel = (hosts <= 2 || algorithm === 'collnet' ? inside : between) / 1000;
  const all = channels * perChannel;
  const limits = LL_BETWEEN_HOSTS[processors === 'amd' ? 'amd' : 'other'];
  const llLimit = hosts === 1 ? generation.llInside : limits[hosts === 2 ? 0 : 1];
  if (algorithm === 'collnet') return all;
  if (algorithm === 'ring') {
    if (protocol === 'll') return Math.min(llLimit, all * 0.5);
    return protocol === 'll128' ? Math.min(all * 0.92, channels * (generation.ringLL128[column] ?? 0)) : all;
  }
  const simple = Math.min(all * 0.92, channels * (generation.treeSimple[column] ?? 0));
  const plain = hasPlainTree ? 0.85 : 1;
  if (protocol === 'll') return Math.min(simple / 3.8, llLimit) * plain;
  if (protocol === 'simple') return simple * plain;
  const lines = simple * (hosts === 1 ? 7 / 9 : 120 / 128);
  return Math.min(lines, channels * (generation.treeLL128[column] ?? 0)) * plain;
}

/** Microseconds of CPU time of a network call, and number of such calls in a step of protocol Simple. */
const NET_CALL = { intel: 1, amd: 2, other: 1 } as const;
const CALLS_OF_SIMPLE = 3;

function latencyOf(
  collective: CollectiveName,
  algorithm: NetworkAlgorithm,
  protocol: ProtocolName,
  graph: Agreement,
  { ranks, hosts, processors }: Situation,
): number {
  const perHost = Math.floor(ranks / hosts);
  const link = graph.typeInside === 'NVL' || graph.typeInside === 'LOC' ? 'nvlink' : 'pci';
  const inside = STEP_LATENCY[link][algorithm][protocol];
  // With one GPU per host no rank overlaps other work with the network, so that NCCL's model takes the latency of trees.
  const net = STEP_LATENCY.net[ranks === hosts ? 'tree' : algorithm][protocol];
  const between = net + graph.latencyBetween * (protocol === 'simple' ? 2 : 1);
  const base = BASE_LATENCY[algorithm][protocol];
  if (algorithm === 'tree') return base + 2 * ((perHost - 1) * inside + Math.floor(Math.log2(hosts)) * between);
  if (algorithm === 'collnet') return base + 2 * (perHost - 1) * inside + between;
  const steps = stepsOf(collective, ranks) ?? 0;
  if (collective === 'broadcast' || collective === 'reduce') {
    const kind = hosts === 1 ? link : 'net';
    if (graph.sameChannels) return base + STEP_LATENCY[kind].ring[protocol];
    return base + steps * STEP_LATENCY[kind][protocol === 'simple' ? 'tree' : 'ring'][protocol];
  }
  const calls = hosts === 1 ? 0 : NET_CALL[processors] * (protocol === 'simple' ? CALLS_OF_SIMPLE : 1);
  const stepsBetween = hosts === 1 ? 0 : (collective === 'allReduce' ? 2 : 1) * (hosts - 1);
  return base + (steps - stepsBetween) * Math.max(inside, calls) + stepsBetween * between;
}
