/**
 * How fast the connections between hosts carry what they are given, and which of them is slower than its equals. While others wait for a slow
 * one they carry nothing, so a rate counts only the time in which something was under way.
 */
import type { RankEdge } from '../../control/messages/hang.ts';
import { edgeName, edgesIn, otherEnd } from '../hang/edges.ts';
import type { TimedAnswer } from './traces.ts';
import { median } from './lateness.ts';

export interface LinkEnd {
  readonly host: string;
  readonly nic: string;
  /** Of the job, ascending. */
  readonly ranks: readonly number[];
}

/** All connections from one NIC to another, in one window. */
export interface Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  readonly bytes: number;
  /** While something was under way. */
  readonly bytesPerSecond: number;
  /** Part of the window in which something was. */
  readonly busy: number;
  readonly retransmits: number;
}

export interface SlowLink {
  /** Null: all links of this NIC are slow. */
  readonly nic: LinkEnd | null;
  /** The slowest of them. */
  readonly link: Link;
  readonly links: readonly Link[];
  /** Median of the others, and their number. */
  readonly usual: number;
  readonly others: number;
}

/** A link that carries less in a window says nothing about its rate. */
const MIN_BYTES = 4e6;
/** Slower than its equals by so much, and under way for such a part of the window. */
const MIN_FACTOR = 1.5;
const MIN_BUSY = 0.3;

type Answers = ReadonlyMap<string, Pick<TimedAnswer, 'where'>>;

interface Sum {
  readonly from: LinkEnd & { readonly ranks: number[] };
  readonly to: LinkEnd & { readonly ranks: number[] };
  bytes: number;
  busyUs: number;
  retransmits: number;
  readonly windowUs: number;
}

/** What links have carried between two answers of their senders' hosts. */
export function linksBetween(before: Answers, now: Answers): Link[] {
  const edgesOf = (answers: Answers) => edgesIn(Array.from(answers, ([host, { where }]) => [host, where] as const));
  const [earlier, later] = [edgesOf(before), edgesOf(now)];
  const sums = new Map<string, Sum>();
  for (const [host, { where }] of now) {
    const windowUs = where.monotonicUs - (before.get(host)?.where.monotonicUs ?? where.monotonicUs);
    for (const edge of where.edges) {
      const known = earlier.get(edgeName(edge));
      const receiver = later.get(otherEnd(edge));
      if (!edge.sends || known === undefined || receiver === undefined || windowUs <= 0) continue;
      const name = `${host} ${edge.nic} ${receiver.host} ${receiver.nic}`;
      const sum = sums.get(name) ?? {
        from: { host, nic: edge.nic, ranks: [] },
        to: { host: receiver.host, nic: receiver.nic, ranks: [] },
        bytes: 0,
        busyUs: 0,
        retransmits: 0,
        windowUs,
      };
      sums.set(name, sum);
      add(sum, known, edge);
      note(sum.from.ranks, edge.jobRank);
      note(sum.to.ranks, receiver.jobRank);
    }
  }
  return [...sums.values()].flatMap(({ from, to, bytes, busyUs, retransmits, windowUs }) =>
    busyUs <= 0
      ? []
      : [{ from, to, bytes, bytesPerSecond: (bytes / busyUs) * 1e6, busy: busyUs / windowUs, retransmits }],
  );
}

/** Null: none stands out, or there is nothing to compare it with. */
export function slowLinkIn(links: readonly Link[]): SlowLink | null {
  const used = links.filter(({ bytes }) => bytes >= MIN_BYTES);
  const isSlow = (link: Link, usual: number): boolean =>
    link.busy >= MIN_BUSY && link.bytesPerSecond * MIN_FACTOR <= usual;
  const slow = used.filter((link) => isSlow(link, rateOf(used.filter((one) => one !== link))));
  const slowest = slow.toSorted((one, other) => one.bytesPerSecond - other.bytesPerSecond)[0];
  if (slowest === undefined) return null;
  for (const end of [slowest.from, slowest.to]) {
    const own = used.filter(({ from, to }) => isSame(from, end) || isSame(to, end));
    const others = used.filter((link) => !own.includes(link));
    const usual = rateOf(others);
    const areAlike = own.every(
      (link) => link.bytesPerSecond <= MIN_FACTOR * slowest.bytesPerSecond && isSlow(link, usual),
    );
    if (own.length > 1 && others.length > 0 && areAlike)
      return { nic: end, link: slowest, links: own, usual, others: others.length };
  }
  const others = used.filter((link) => link !== slowest);
  return { nic: null, link: slowest, links: [slowest], usual: rateOf(others), others: others.length };
}

/** For StragglerTracker. */
export function describeSlowLink({ nic, link }: SlowLink): { subject: string; amount: number } {
  const { from, to, bytesPerSecond } = link;
  const subject = nic === null ? `${from.host} ${from.nic} ${to.host} ${to.nic}` : `${nic.host} ${nic.nic}`;
  return { subject, amount: 1 / bytesPerSecond };
}

/** What the kernel has counted, if it does so. Connections of one link are busy at the same time. */
function add(sum: Sum, before: RankEdge, { wire, bytes, busyUs }: RankEdge): void {
  const [carried, busy] =
    wire === null
      ? [bytes - before.bytes, busyUs - before.busyUs]
      : [wire.bytes - (before.wire?.bytes ?? 0), wire.busyUs - (before.wire?.busyUs ?? 0)];
  sum.bytes += carried;
  sum.busyUs = Math.max(sum.busyUs, Math.min(busy, sum.windowUs));
  sum.retransmits += (wire?.retransmits ?? 0) - (before.wire?.retransmits ?? 0);
}

function note(ranks: number[], rank: number): void {
  if (ranks.includes(rank)) return;
  ranks.push(rank);
  ranks.sort((one, other) => one - other);
}

function isSame(one: LinkEnd, other: LinkEnd): boolean {
  return one.host === other.host && one.nic === other.nic;
}

function rateOf(links: readonly Link[]): number {
  return links.length === 0 ? 0 : median(links.map(({ bytesPerSecond }) => bytesPerSecond));
}
