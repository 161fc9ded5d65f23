/** What aggregators put on links and on their own threads in an all-reduce, each of which may be what limits it. */
import type { AggregatorPlace, AggregatorPlaces } from '../input/network-reduction.ts';
import { AGGREGATOR_COSTS } from './between-costs.ts';
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

/** Beyond so many members a group has a tree of aggregators, where there are several (native/aggregator/tree.h). */
const FAN_IN = 32;
/** A group's calls take so many trees in turn at most (native/aggregator/stripe_listener.cc). */
const MAX_STRIPES = 8;

/** How a group's members are served. */
interface Serving {
  /** That the busiest aggregator of a group exchanges with: members, and the aggregator above it. */
  readonly peers: number;
  /** Aggregators of a group, one behind the other for a contribution. */
  readonly levels: number;
  /** The busiest aggregator's part of all groups; more than 1 where it serves a group in several places of a tree. */
  readonly share: number;
  /** What aggregators on one host serve together at most. */
  readonly maxShare: number;
}

function servingOf(hosts: number, aggregators: number): Serving {
  const widths: number[] = [];
  if (aggregators === 1) widths.push(hosts);
  else for (let width = hosts; width > 1; widths.push(width)) width = Math.ceil(width / FAN_IN);
  const levels = Math.max(1, widths.length);
  const nodes = levels === 1 ? 1 : widths.reduce((sum, width) => sum + width, 0);
  // Neighbouring aggregators of the list serve a tree, and the trees of a group share none where there are enough.
  const stripes = Math.min(Math.max(1, Math.floor(aggregators / nodes)), MAX_STRIPES);
  const share = Math.ceil(nodes / aggregators) / stripes;
  const peers = levels === 1 ? hosts : Math.ceil(hosts / (widths[0] ?? 1)) + 1;
  return { peers, levels, share, maxShare: nodes };
}

/** Of every host with an aggregator its link, and of every aggregator its thread. */
export function limitsOfAggregators(aggregators: AggregatorPlaces, extent: RanksOnHosts, terms: Terms): Limited[] {
  const { hosts } = groupsOf(extent);
  const serving = servingOf(hosts, aggregators.length);
  const { peers, share, maxShare } = serving;
  const threads = aggregators.map((aggregator): Limited => {
    const load = aggregator.place === 'member' ? terms.load : 1;
    return {
      limit: { by: 'aggregatorThread', aggregator, members: peers, share },
      slowness: (load * peers * share) / AGGREGATOR_COSTS.bytesPerMicrosecond,
    };
  });
  const links = [...Map.groupBy(aggregators, placeOf).values()].flatMap((own) => {
    const [aggregator] = own;
    const together = { ...serving, share: Math.min(maxShare, own.length * share) };
    return aggregator === undefined ? [] : [linkOf(aggregator, together, terms)];
  });
  return [...links, ...threads];
}

/** What the ranks of the aggregator's own host contribute to it crosses no link, but the results of other aggregators do. */
function linkOf(aggregator: AggregatorPlace, { peers, levels, share }: Serving, terms: Terms): Limited {
  const isMember = aggregator.place === 'member';
  // A tree has their contributions somewhere.
  const isOwn = isMember && levels === 1;
  const senders = isOwn ? peers - 1 : peers;
  const isKnown = aggregator.place === 'other' && aggregator.speedMbps > 0;
  const rate = isKnown ? aggregator.speedMbps / BITS : rateToAggregator(terms);
  const ofRanks = isMember ? 1 - (isOwn ? share : 0) : 0;
  return {
    limit: { by: 'aggregatorLink', aggregator, senders, share, rate },
    slowness: (senders * share + ofRanks) / rate,
  };
}

/** Bits of a byte: Mbit/s are so many times bytes per microsecond. */
const BITS = 8;

function placeOf(aggregator: AggregatorPlace): string {
  return aggregator.place === 'member' ? `host ${aggregator.host}` : aggregator.name;
}

/** Microseconds until the last contribution has reached the top of a group's aggregators, and the last result its rank. */
export function aggregatorLatency(
  aggregators: AggregatorPlaces,
  extent: RanksOnHosts,
  { load, costs }: Pick<BetweenTerms, 'load' | 'costs'>,
): number {
  const { hosts, groups } = groupsOf(extent);
  const { peers, levels, share } = servingOf(hosts, aggregators.length);
  const slowest = aggregators.some(({ place }) => place === 'member') ? load : 1;
  const further = 2 * (levels - 1) * costs.hopBetween;
  const calls = Math.max(1, groups * share); // a call goes to one of the group's trees
  return further + slowest * levels * calls * peers * AGGREGATOR_COSTS.perMember;
}
