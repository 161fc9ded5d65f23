/** Predicted times of the forms by which the GPUs of one host use their NVLinks. */
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { COPY_ENGINES, HANDS } from './constants.ts';
import type { Prediction, Situation } from './network.ts';

export type InsideForm = AlgorithmName | 'copyEngine';

/** null: there is no such form. `bytes` as in network.ts. */
export function predictInside(
  collective: CollectiveName,
  form: InsideForm,
  protocol: ProtocolName,
  { ranks, hosts, nvlinks }: Situation,
): Prediction | null {
  if (hosts > 1 || nvlinks === 0 || ranks < 2 || form === 'collnet') return null;
  const sent = sentShare(collective, form, ranks);
  if (sent === null) return null;
  if (form === 'copyEngine') {
    if (protocol !== 'simple') return null;
    return { microseconds: COPY_ENGINES.latency, bytesPerMicrosecond: (nvlinks * COPY_ENGINES.share * 1000) / sent };
  }
  const { first, further, share } = HANDS[protocol];
  return {
    microseconds: first + further * (handOvers(collective, form, ranks) - 1),
    bytesPerMicrosecond: (nvlinks * share * 1000) / sent,
  };
}

/** How often data are handed over before the last rank has its result. */
function handOvers(collective: CollectiveName, form: InsideForm, ranks: number): number {
  const both = collective === 'allReduce' ? 2 : 1;
  if (form === 'directTwoShot') return 2;
  if (form === 'ring') return both * (ranks - 1);
  return form === 'tree' ? both * Math.ceil(Math.log2(ranks)) : 1;
}

/** What the busiest rank sends, as a part of the larger of its two buffers. null: the form does not do this. */
function sentShare(collective: CollectiveName, form: InsideForm, ranks: number): number | null {
  const others = (ranks - 1) / ranks;
  switch (collective) {
    case 'allReduce':
      if (form === 'copyEngine') return null;
      if (form === 'directOneShot') return ranks - 1;
      return form === 'tree' ? 2 : 2 * others;
    case 'broadcast':
    case 'reduce':
      if (form === 'directTwoShot' || (form === 'copyEngine' && collective === 'reduce')) return null;
      if (form === 'ring') return 1;
      return form === 'tree' ? 2 : ranks - 1;
    case 'allGather':
      return form === 'tree' || form === 'directTwoShot' ? null : others;
    case 'reduceScatter':
      return form === 'ring' || form === 'directOneShot' ? others : null;
    case 'sendRecv':
      return form === 'directOneShot' || form === 'copyEngine' ? 1 : null;
    case 'barrier':
      return null;
    default:
      return form === 'directOneShot' || form === 'copyEngine' ? others : null;
  }
}
