/** Predicted times between hosts, of what our engine does: from an algorithm's traffic, and what a network and its ranks cost. */
import { isCollnet } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName } from '../../plan/types.ts';
import type { BetweenCosts, Correction } from './between-costs.ts';
import type { BetweenTerms, Prediction } from './situation.ts';
import { aggregatorLatency, limitsOfAggregators, rateToAggregator } from './aggregators.ts';
import type { Limited } from './aggregators.ts';
import { trafficBetween } from './traffic.ts';
import type { RanksOnHosts, Traffic } from './traffic.ts';

const NO_CORRECTION: Correction = { latency: 1, bandwidth: 1 };

/** Returns null if the algorithm does not implement the collective, or if it needs a network that reduces and there is none. */
export function predictBetween(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  extent: RanksOnHosts,
  terms: BetweenTerms,
): Prediction | null {
  const { costs } = terms;
  const traffic = trafficOf(collective, algorithm, extent, terms);
  if (traffic === null) return null;
  const { latency, bandwidth } = correctionOf(algorithm, terms);
  const slowness = Math.max(...limitsOf(collective, algorithm, extent, terms).map((one) => one.slowness));
  const fill = { microseconds: costs.fillMicroseconds * traffic.passes * latency, bytes: fillBytes(traffic, costs) };
  return {
    microseconds: (latencyOf(algorithm, traffic, terms) + latencyOfNetwork(algorithm, extent, terms)) * latency,
    bytesPerMicrosecond: 1 / (slowness * bandwidth),
    fill: costs.fillMicroseconds === 0 || !Number.isFinite(fill.bytes) ? null : fill,
  };
}

/** What measurements say of the algorithm's predicted times. */
export function correctionOf(algorithm: AlgorithmName, { corrections }: BetweenTerms): Correction {
  return corrections[algorithm] ?? NO_CORRECTION;
}

function trafficOf(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  extent: RanksOnHosts,
  { reduction }: BetweenTerms,
): Traffic | null {
  return isCollnet(algorithm) && reduction.by === 'none' ? null : trafficBetween(collective, algorithm, extent);
}

/** What may limit the bandwidth of an operation, without corrections; nothing where there is no prediction. */
export function limitsOf(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  extent: RanksOnHosts,
  terms: BetweenTerms,
): Limited[] {
  const traffic = trafficOf(collective, algorithm, extent, terms);
  if (traffic === null) return [];
  const { reduction } = terms;
  const toAggregators = isCollnet(algorithm) && reduction.by === 'aggregators';
  const rate = Math.min(terms.costs.perHost, toAggregators ? rateToAggregator(terms) : (terms.nicRate ?? Infinity));
  return [
    { limit: { by: 'rank' }, slowness: ofRank(traffic, channelsOf(collective, algorithm, terms), terms) },
    { limit: { by: 'link', share: traffic.ofHost, rate }, slowness: traffic.ofHost / rate },
    ...(toAggregators ? limitsOfAggregators(reduction.aggregators, extent, terms) : []),
  ];
}

function latencyOfNetwork(algorithm: AlgorithmName, extent: RanksOnHosts, terms: BetweenTerms): number {
  const { reduction } = terms;
  const isThere = isCollnet(algorithm) && reduction.by === 'aggregators';
  return isThere ? aggregatorLatency(reduction.aggregators, extent, terms) : 0;
}

/** An all_reduce by a ring or directly sends and receives on every channel at once: with more of them it takes up to twice as long from 1 to 2 MiB. */
const ALL_REDUCE_CHANNELS = 8;

/** How many an operation may use. */
export function channelsOf(
  collective: CollectiveName,
  algorithm: AlgorithmName,
  { channels, pairChannels }: Pick<BetweenTerms, 'channels' | 'pairChannels'>,
): number {
  const all = algorithm === 'ring' || algorithm === 'rail' ? channels : Math.min(channels, pairChannels);
  return collective === 'allReduce' && algorithm !== 'rail' ? Math.min(all, ALL_REDUCE_CHANNELS) : all;
}

function latencyOf(algorithm: AlgorithmName, traffic: Traffic, { costs, load }: BetweenTerms): number {
  const { before, beforeTree, hopBetween, hopInside, peer, reducedPeer, peerInside } = costs;
  const { hopsBetween, hopsInside, furtherPeers, furtherPeersInside, passes, reduces } = traffic;
  const further = furtherPeers * (peer + (reduces ? reducedPeer : 0)) + furtherPeersInside * peerInside;
  const start = algorithm === 'tree' ? beforeTree : before;
  return load * (start + hopsBetween * hopBetween + hopsInside * hopInside + passes * further);
}

/** Microseconds that the busiest rank takes for a byte of the operation. */
function ofRank({ between, inside }: Traffic, channels: number, { costs, load }: BetweenTerms): number {
  const { perChannel, perRank, insideRate } = costs;
  const network = between / Math.min(perRank, channels * perChannel);
  return load * (network + inside / insideRate);
}

/** Bytes of the operation from which all slots of each connection are on their way. */
function fillBytes({ between, passes, furtherPeers }: Traffic, { fillBytes: onConnection }: BetweenCosts): number {
  return (onConnection * passes * (furtherPeers + 1)) / between;
}
