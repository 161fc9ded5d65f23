/** Predicted times of the forms by which the GPUs of one host reach each other. */
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { BARRIER, COPY_ENGINES, FILLING_BLOCKS, FURTHER, FURTHER_PEER, INTRA_HOST_COSTS, PULLS } from './constants.ts';
import type { TrafficPattern } from './constants.ts';
import type { Prediction, Situation } from './network.ts';

/** null: there is no such form. `bytes` as in network.ts. */
export function predictInside(
  collective: CollectiveName,
  form: AlgorithmName,
  protocol: ProtocolName,
  situation: Situation,
): Prediction | null {
  const { ranks, hosts, links, blocks } = situation;
  if (hosts > 1 || links === 0 || ranks < 2 || form === 'collnet') return null;
  if (collective === 'barrier') return predictBarrier(form, protocol, ranks);
  if (collective === 'allReduce' && form === 'copyEngine')
    return protocol === 'simple' ? predictHalves(situation) : null;
  const sent = sentShare(collective, form, ranks);
  if (sent === null) return null;
  if (form === 'copyEngine') {
    if (protocol !== 'simple') return null;
    if (collective === 'reduceScatter') {
      const share = PULLS.share * Math.min(1, blocks / PULLS.fillingBlocks);
      return { microseconds: PULLS.latency, bytesPerMicrosecond: (links * share * 1000) / sent, fill: null };
    }
    const bytesPerMicrosecond = (links * COPY_ENGINES.share * 1000) / sent;
    const microseconds = collective === 'sendRecv' ? COPY_ENGINES.messageLatency : COPY_ENGINES.latency;
    return { microseconds, bytesPerMicrosecond, fill: null };
  }
  const cost = INTRA_HOST_COSTS[patternOf(collective)][form]?.[protocol];
  if (cost === undefined) return null;
  const more =
    form === 'ring' || form === 'tree'
      ? FURTHER[protocol] * (handOvers(collective, form, ranks) - handOvers(collective, form, 2))
      : FURTHER_PEER * (ranks - 2);
  return {
    microseconds: cost.microseconds + more,
    bytesPerMicrosecond: (links * cost.share * Math.min(1, blocks / FILLING_BLOCKS[protocol]) * 1000) / sent,
    fill: { microseconds: cost.fillMicroseconds, bytes: cost.fillBytes / sent },
  };
}

/** Each rank's part is reduced where all others' lie, and then copied to all, who have met by then: that is half of what a copy waits for. */
function predictHalves(situation: Situation): Prediction | null {
  const copies = predictInside('allGather', 'copyEngine', 'simple', situation);
  const reduction = predictInside('reduceScatter', 'copyEngine', 'simple', situation);
  if (copies === null || reduction === null) return null;
  return {
    microseconds: reduction.microseconds + copies.microseconds / 2,
    bytesPerMicrosecond: 1 / (1 / copies.bytesPerMicrosecond + 1 / reduction.bytesPerMicrosecond),
    fill: null,
  };
}

/** Without data; every rank signals to every other. */
function predictBarrier(form: AlgorithmName, protocol: ProtocolName, ranks: number): Prediction | null {
  if (form !== 'directOneShot' || protocol !== 'll') return null;
  return { microseconds: BARRIER + FURTHER_PEER * (ranks - 2), bytesPerMicrosecond: Infinity, fill: null };
}

/** Whose constants it has. */
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

/** How often data are handed over before the last rank has its result. */
function handOvers(collective: CollectiveName, form: 'ring' | 'tree', ranks: number): number {
  const both = collective === 'allReduce' ? 2 : 1;
  return form === 'ring' ? both * (ranks - 1) : both * Math.ceil(Math.log2(ranks));
}

/** What the busiest rank sends, as a part of the larger of its two buffers. null: the form does not do this. */
export function sentShare(collective: CollectiveName, form: AlgorithmName, ranks: number): number | null {
  const others = (ranks - 1) / ranks;
  switch (collective) {
    case 'allReduce':
      if (form === 'directOneShot') return ranks - 1;
      return form === 'tree' && ranks > 2 ? 2 : 2 * others;
    case 'broadcast':
    case 'reduce':
      if (form === 'directTwoShot' || (form === 'copyEngine' && collective === 'reduce')) return null;
      if (form === 'ring' || form === 'copyEngine') return 1;
      return form === 'tree' ? Math.min(2, ranks - 1) : ranks - 1;
    case 'allGather':
      return form === 'tree' || form === 'directTwoShot' ? null : others;
    case 'reduceScatter':
      return form === 'ring' || form === 'directOneShot' || form === 'copyEngine' ? others : null;
    case 'sendRecv':
      return form === 'directOneShot' || form === 'copyEngine' ? 1 : null;
    default:
      return form === 'directOneShot' || form === 'copyEngine' ? others : null;
  }
}
