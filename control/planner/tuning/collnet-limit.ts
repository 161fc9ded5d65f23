/** What limits an all-reduce by the network, in words. */
import { binarySize } from '../../size-text.ts';
import { networkSpeed } from '../../speed-text.ts';
import type { AggregatorPlace } from '../input/network-reduction.ts';
import { groupsOf } from './aggregators.ts';
import type { Limit } from './aggregators.ts';
import { correctionOf, limitsOf } from './between.ts';
import type { Choice } from './choices.ts';
import type { BetweenTerms, Situation } from './situation.ts';

/** Name of a host of the communicator. */
type HostName = (host: number) => string;

export function hostOf(aggregator: AggregatorPlace, nameOf: HostName): string {
  return aggregator.place === 'member' ? nameOf(aggregator.host) : aggregator.name;
}

interface Model {
  readonly situation: Situation;
  readonly between: BetweenTerms;
}

/** A clause: the latency of an operation of so many bytes, or what moves its bytes, whichever takes longer. */
export function collnetLimit(
  { algorithm, prediction }: Pick<Choice, 'algorithm' | 'prediction'>,
  { situation, between }: Model,
  bytes: number,
  nameOf: HostName,
): string {
  const latency = prediction.microseconds;
  const limits = limitsOf('allReduce', algorithm, situation, between);
  const [slowest] = limits.toSorted((one, other) => other.slowness - one.slowness);
  const moved = (slowest?.slowness ?? 0) * correctionOf(algorithm, between).bandwidth * bytes;
  if (slowest === undefined || latency >= moved) return latencyText(latency, situation, between);
  return limitText(slowest.limit, bytes, situation, (aggregator) => busiest(hostOf(aggregator, nameOf), between));
}

function latencyText(microseconds: number, { hosts }: Situation, { reduction }: BetweenTerms): string {
  const transfers = 'the two transfers between hosts';
  const parts =
    reduction.by === 'aggregators' ? `${transfers} and the aggregator's messages for ${hosts} members` : transfers;
  return `latency: ${parts} take ${Number(microseconds.toPrecision(3))} µs`;
}

function limitText(
  limit: Limit,
  bytes: number,
  situation: Situation,
  who: (aggregator: AggregatorPlace) => string,
): string {
  switch (limit.by) {
    case 'rank':
      return `the core of each rank, which sends and receives ${binarySize(bytes / groupsOf(situation).groups)}`;
    case 'link':
      return `the link of each host: ${binarySize(limit.share * bytes)} each way over ${rateText(limit.rate)}`;
    case 'aggregatorLink': {
      const { aggregator, senders, share, rate } = limit;
      const isMember = aggregator.place === 'member';
      const hosts = `${senders}${isMember ? ' other' : ''} host${senders === 1 ? '' : 's'}`;
      const each = `${senders === 1 ? 'sends' : 'send'} it ${binarySize(share * bytes)}${senders === 1 ? '' : ' each'}`;
      return `${who(aggregator)}: ${hosts} ${each} over ${rateText(rate)}${isMember ? ', which the ranks there use too' : ''}`;
    }
    case 'aggregatorThread': {
      const { aggregator, members, share } = limit;
      return `${who(aggregator)}: its thread receives, reduces and sends ${members} times ${binarySize(share * bytes)}`;
    }
    default:
      return limit satisfies never;
  }
}

/** Groups choose their aggregator by a hash: which of several is the busiest one shows in the job alone. */
function busiest(host: string, { reduction }: BetweenTerms): string {
  const count = reduction.by === 'aggregators' ? reduction.aggregators.length : 0;
  return count === 1 ? `the aggregator on ${host}` : `the busiest of ${count} aggregators, such as that on ${host}`;
}

/** Megabytes per second are so many Mb/s. */
const BITS = 8;

function rateText(rate: number): string {
  return networkSpeed(Math.round(rate * BITS));
}
