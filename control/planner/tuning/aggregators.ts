/** What aggregators put on links and on their own threads in an all-reduce, each of which may be what limits it. */
import type { AggregatorPlace, AggregatorPlaces } from '../input/network-reduction.ts';
import { AGGREGATOR_COSTS } from './between-costs.ts';
import { busiestShare } from './busiest-share.ts';
import type { BetweenTerms } from './situation.ts';
import type { RanksOnHosts } from './traffic.ts';

/** What moves the bytes of an operation, and so may limit it. */
export type Limit =
  /** The core of the busiest rank. */
  | { readonly by: 'rank' }
  /** The NICs of a host, which carry `share` of the operation's bytes. */
  | { readonly by: 'link'; readonly share: number; readonly rate: number }
  /** The NIC of an aggregator's host, which receives contributions from `senders` hosts of `share` of the operation's bytes each. */
  | {
      readonly by: 'aggregatorLink';
      readonly aggregator: AggregatorPlace;
      readonly senders: number;
      readonly share: number;
      readonly rate: number;
    }
  /** The thread of an aggregator, which receives and sends `share` of the operation's bytes for each of `members`. */
  | {
      readonly by: 'aggregatorThread';
      readonly aggregator: AggregatorPlace;
      readonly members: number;
      readonly share: number;
    };

/** `slowness`: microseconds that a byte of the operation takes. */
export interface Limited {
  readonly limit: Limit;
  readonly slowness: number;
}

type Terms = Pick<BetweenTerms, 'linkRate' | 'load'>;

/** A group has a rank of each host, and there is one for each local index. */
interface Groups {
  readonly hosts: number;
  readonly groups: number;
}

export function groupsOf({ ranks, hosts }: RanksOnHosts): Groups {
  return { hosts, groups: Math.ceil(ranks / hosts) };
}

/** Bytes per microsecond of the one NIC by which a rank reaches an aggregator. */
export function rateToAggregator({ linkRate }: Terms): number {
  return linkRate ?? Infinity;
}

/** Of every host with an aggregator its link, and of every aggregator its thread. */
export function limitsOfAggregators(aggregators: AggregatorPlaces, extent: RanksOnHosts, terms: Terms): Limited[] {
  const { hosts, groups } = groupsOf(extent);
  const share = busiestShare(groups, aggregators.length);
  const threads = aggregators.map((aggregator): Limited => {
    const load = aggregator.place === 'member' ? terms.load : 1;
    return {
      limit: { by: 'aggregatorThread', aggregator, members: hosts, share },
      slowness: (load * hosts * share) / AGGREGATOR_COSTS.bytesPerMicrosecond,
    };
  });
  const links = [...Map.groupBy(aggregators, placeOf).values()].flatMap((own) => {
    const [aggregator] = own;
    return aggregator === undefined
      ? []
      : [linkOf(aggregator, Math.min(1, own.length * share), { hosts, groups }, terms)];
  });
  return [...links, ...threads];
}

/** What the ranks of the aggregator's own host contribute crosses no link, but the results of other aggregators do. */
function linkOf(aggregator: AggregatorPlace, share: number, { hosts }: Groups, terms: Terms): Limited {
  const isMember = aggregator.place === 'member';
  const senders = isMember ? hosts - 1 : hosts;
  const isKnown = aggregator.place === 'other' && aggregator.speedMbps > 0;
  const rate = isKnown ? aggregator.speedMbps / BITS : rateToAggregator(terms);
  const carried = senders * share + (isMember ? 1 - share : 0);
  return { limit: { by: 'aggregatorLink', aggregator, senders, share, rate }, slowness: carried / rate };
}

/** Bits of a byte: Mbit/s are so many times bytes per microsecond. */
const BITS = 8;

function placeOf(aggregator: AggregatorPlace): string {
  return aggregator.place === 'member' ? `host ${aggregator.host}` : aggregator.name;
}

/** Microseconds until an aggregator has received the last contribution of all its groups and sent all results. */
export function aggregatorLatency(aggregators: AggregatorPlaces, extent: RanksOnHosts, { load }: Terms): number {
  const { hosts, groups } = groupsOf(extent);
  const slowest = aggregators.some(({ place }) => place === 'member') ? load : 1;
  const busiest = groups * busiestShare(groups, aggregators.length);
  return slowest * busiest * hosts * AGGREGATOR_COSTS.perMember;
}
