/** What hosts with different machines can do together: of everything the least. */
import { farther } from '../machine/path.ts';
import type { Graph, Terms } from '../search/graph.ts';

export interface Agreement extends Terms {
  /** Before doubling. */
  readonly channels: number;
}

/** Of at least one graph. */
export function agree(graphs: readonly Graph[]): Agreement {
  const [first, ...others] = graphs.map(ownAgreement);
  if (first === undefined) throw new RangeError('no host takes part');
  return others.reduce(lesser, first);
}

/** What one machine can do. */
export function ownAgreement(graph: Graph): Agreement {
  const { channels, inside, between, typeInside, typeBetween, sameChannels, crossNic, latencyBetween } = graph;
  return {
    channels: channels.length,
    inside,
    between,
    typeInside,
    typeBetween,
    sameChannels,
    crossNic,
    latencyBetween,
  };
}

function lesser(one: Agreement, other: Agreement): Agreement {
  return {
    channels: Math.min(one.channels, other.channels),
    inside: Math.min(one.inside, other.inside),
    between: Math.min(one.between, other.between),
    typeInside: farther(one.typeInside, other.typeInside),
    typeBetween: farther(one.typeBetween, other.typeBetween),
    sameChannels: one.sameChannels && other.sameChannels,
    crossNic: one.crossNic > other.crossNic ? one.crossNic : other.crossNic,
    latencyBetween: Math.max(one.latencyBetween, other.latencyBetween),
  };
}
