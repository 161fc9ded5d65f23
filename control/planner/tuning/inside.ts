/** Predicted times of the variants by which the GPUs of one host reach each other. */
import { isCollnet } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import {
  BARRIER_LATENCY,
  COPY_ENGINES,
  FILLING_BLOCKS,
  HOP_LATENCY,
  PEER_LATENCY,
  INTRA_HOST_COSTS,
  PULLS,
} from './constants.ts';
import type { TrafficPattern } from './constants.ts';
import type { Prediction, Situation } from './situation.ts';

/** Returns null if there is no such variant. `bytes` as in network.ts. */
export function predictInside(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  protocol: ProtocolName,
  situation: Situation,
): Prediction | null {
  const { ranks, hosts, linkBandwidth, blocks } = situation;
  if (hosts > 1 || linkBandwidth === 0 || ranks < 2 || isCollnet(algorithm)) return null;
  if (collective === 'barrier') return predictBarrier(algorithm, protocol, ranks);
  if (collective === 'allReduce' && algorithm === 'copyEngine')
    return protocol === 'simple' ? predictPulledAllReduce(situation) : null;
  const sent = sentShare(collective, algorithm, ranks);
  if (sent === null) return null;
  if (algorithm === 'copyEngine') {
    if (protocol !== 'simple') return null;
    if (collective === 'reduceScatter') {
      const share = PULLS.share * Math.min(1, blocks / PULLS.fillingBlocks);
      return { microseconds: PULLS.latency, bytesPerMicrosecond: (linkBandwidth * share * 1000) / sent, fill: null };
    }
    const bytesPerMicrosecond = (linkBandwidth * COPY_ENGINES.share * 1000) / sent;
    const microseconds = collective === 'sendRecv' ? COPY_ENGINES.messageLatency : COPY_ENGINES.latency;
    return { microseconds, bytesPerMicrosecond, fill: null };
  }
  const cost = INTRA_HOST_COSTS[patternOf(collective)][algorithm]?.[protocol];
  if (cost === undefined) return null;
  const furtherLatency =
    algorithm === 'ring' || algorithm === 'tree'
      ? HOP_LATENCY[protocol] * (hops(collective, algorithm, ranks) - hops(collective, algorithm, 2))
      : PEER_LATENCY * (ranks - 2);
  return {
    microseconds: cost.microseconds + furtherLatency,
    bytesPerMicrosecond: (linkBandwidth * cost.share * Math.min(1, blocks / FILLING_BLOCKS[protocol]) * 1000) / sent,
    fill: { microseconds: cost.fillMicroseconds, bytes: cost.fillBytes / sent },
  };
}

/**
 * Each rank pulls and reduces its part, then copies it to all other ranks. A copy waits for the ranks before it and after it; here the ranks have
 * synchronized already, which saves half of that latency.
 */
function predictPulledAllReduce(situation: Situation): Prediction | null {
  const copies = predictInside('allGather', 'copyEngine', 'simple', situation);
  const reduction = predictInside('reduceScatter', 'copyEngine', 'simple', situation);
  if (copies === null || reduction === null) return null;
  return {
    microseconds: reduction.microseconds + copies.microseconds / 2,
    bytesPerMicrosecond: 1 / (1 / copies.bytesPerMicrosecond + 1 / reduction.bytesPerMicrosecond),
    fill: null,
  };
}

/** A barrier sends no data; every rank signals to every other. */
function predictBarrier(algorithm: AlgorithmName, protocol: ProtocolName, ranks: number): Prediction | null {
  if (algorithm !== 'directOneShot' || protocol !== 'll') return null;
  return { microseconds: BARRIER_LATENCY + PEER_LATENCY * (ranks - 2), bytesPerMicrosecond: Infinity, fill: null };
}

/** Traffic pattern whose constants apply to the collective. */
export function patternOf(collective: CollectiveName): TrafficPattern {
  switch (collective) {
    case 'allReduce':
    case 'reduceScatter':
    case 'reduce':
      return collective;
    case 'broadcast':
    case 'scatter':
    case 'gather':
      return 'spread';
    default:
      return 'exchange';
  }
}

/** Number of hops in sequence until the last rank has its result. */
function hops(collective: CollectiveName, algorithm: 'ring' | 'tree', ranks: number): number {
  const both = collective === 'allReduce' ? 2 : 1;
  return algorithm === 'ring' ? both * (ranks - 1) : both * Math.ceil(Math.log2(ranks));
}

/** Bytes that the busiest rank sends, as a fraction of the larger of its two buffers. Returns null if the algorithm does not implement the collective. */
export function sentShare(collective: CollectiveName, algorithm: AlgorithmName, ranks: number): number | null {
  const others = (ranks - 1) / ranks;
  switch (collective) {
    case 'allReduce':
      if (algorithm === 'directOneShot') return ranks - 1;
      return algorithm === 'tree' && ranks > 2 ? 2 : 2 * others;
    case 'broadcast':
    case 'reduce':
      if (algorithm === 'directTwoShot' || (algorithm === 'copyEngine' && collective === 'reduce')) return null;
      if (algorithm === 'ring' || algorithm === 'copyEngine') return 1;
      return algorithm === 'tree' ? Math.min(2, ranks - 1) : ranks - 1;
    case 'allGather':
      return algorithm === 'tree' || algorithm === 'directTwoShot' ? null : others;
    case 'reduceScatter':
      return algorithm === 'ring' || algorithm === 'directOneShot' || algorithm === 'copyEngine' ? others : null;
    case 'sendRecv':
      return algorithm === 'directOneShot' || algorithm === 'copyEngine' ? 1 : null;
    default:
      return algorithm === 'directOneShot' || algorithm === 'copyEngine' ? others : null;
  }
}
