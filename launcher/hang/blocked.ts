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

function endOf({ jobRank: rank, host, nic }: LocatedEdge): EdgeEnd {
  return { rank, host, nic };
}

function isStill(edge: RankEdge, before: ReadonlyMap<string, LocatedEdge>): boolean {
  const known = before.get(edgeName(edge));
  return known !== undefined && known.handed === edge.handed && known.carried === edge.carried;
}
