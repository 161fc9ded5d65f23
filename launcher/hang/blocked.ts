/** Connections between hosts on which messages are under way that do not arrive, though the other side has room for them. */
import type { RankEdge } from '../../control/messages/hang.ts';
import { edgeName, edgesIn, otherEnd } from './edges.ts';
import type { LocatedEdge } from './edges.ts';
import type { Reading } from './table.ts';

interface EdgeEnd {
  /** In the job. */
  readonly rank: number;
  readonly host: string;
  readonly nic: string;
}

export interface BlockedEdge {
  /** Id of the communicator and its epoch: `0123456789abcdef:0`. */
  readonly comm: string;
  readonly from: EdgeEnd;
  readonly to: EdgeEnd;
  readonly messages: number;
  /** Since the last one arrived, in microseconds; null: none has. */
  readonly idleUs: number | null;
}

/** Nothing has moved on them between the readings. Those on which nothing has arrived for longest come first. */
export function blockedEdges(first: Reading, second: Reading): BlockedEdge[] {
  const [before, now] = [edgesIn(first.answers), edgesIn(second.answers)];
  const blocked: BlockedEdge[] = [];
  for (const sender of now.values()) {
    if (!sender.sends) continue;
    const receiver = now.get(otherEnd(sender));
    if (receiver === undefined || !isStill(sender, before) || !isStill(receiver, before)) continue;
    const messages = sender.handed - receiver.carried;
    if (messages <= 0 || receiver.handed <= receiver.carried) continue;
    const comm = `${sender.communicator}:${sender.epoch}`;
    blocked.push({ comm, from: endOf(sender), to: endOf(receiver), messages, idleUs: receiver.idleUs });
  }
  const idle = ({ idleUs }: BlockedEdge): number => idleUs ?? Number.MAX_SAFE_INTEGER;
  return blocked.toSorted((one, other) => idle(other) - idle(one));
}

/** The only host that has an end of each of them; null: there is none, or it may be one of two. */
export function commonHost(edges: readonly BlockedEdge[]): string | null {
  const [first] = edges;
  if (first === undefined) return null;
  const common = [first.from.host, first.to.host].filter((host) =>
    edges.every(({ from, to }) => from.host === host || to.host === host),
  );
  return common.length === 1 ? (common[0] ?? null) : null;
}

/** One for each two hosts. */
export function blockedSentences(edges: readonly BlockedEdge[]): string[] {
  const pairs = Map.groupBy(edges, ({ from, to }) => [from.host, to.host].toSorted().join(' '));
  return Array.from(pairs.values(), (own) => {
    const [first] = own;
    return first === undefined ? '' : own.length === 1 ? blockedSentence(first) : pairSentence(first, own);
  });
}

export function blockedSentence({ from, to, messages, idleUs }: BlockedEdge): string {
  const [what, have] = messages === 1 ? ['a message', 'has'] : [`${messages} messages`, 'have'];
  const since = idleUs === null ? '' : sinceText(idleUs);
  return `${what} from rank ${from.rank} on ${from.host} to rank ${to.rank} on ${to.host} (${from.nic} to ${to.nic}) ${have} not arrived${since}`;
}

/** `first`: of the blocked connections between two hosts. */
function pairSentence({ from, to }: BlockedEdge, edges: readonly BlockedEdge[]): string {
  const isOneWay = edges.every((edge) => edge.from.host === from.host);
  const hosts = isOneWay ? `from ${from.host} to ${to.host}` : `between ${from.host} and ${to.host}`;
  const ends = edges.flatMap((edge) => [edge.from, edge.to]);
  const nicsOf = (host: string): string =>
    [...new Set(ends.filter((end) => end.host === host).map(({ nic }) => nic))].toSorted().join(', ');
  const idle = edges.flatMap(({ idleUs }) => idleUs ?? []);
  const since = idle.length === 0 ? '' : sinceText(Math.min(...idle));
  return `messages on ${edges.length} connections ${hosts} (${nicsOf(from.host)} to ${nicsOf(to.host)}) have not arrived${since}`;
}

function sinceText(idleUs: number): string {
  return `, and nothing has for ${(idleUs / 1e6).toFixed(1)} s`;
}

function endOf({ jobRank: rank, host, nic }: LocatedEdge): EdgeEnd {
  return { rank, host, nic };
}

function isStill(edge: RankEdge, before: ReadonlyMap<string, LocatedEdge>): boolean {
  const known = before.get(edgeName(edge));
  return known !== undefined && known.handed === edge.handed && known.carried === edge.carried;
}
