/** What programs/edges.c says of its connections. */

export interface Moved {
  readonly rank: number;
  /** -1: the connection of a pair. */
  readonly channel: number;
  readonly peer: number;
  readonly sends: boolean;
  readonly bytes: number;
}

/** What the connections carried, by size of the all_reduce. */
export function parseEdges(stdout: string): Map<number, Moved[]> {
  const bySize = new Map<number, Moved[]>();
  for (const line of stdout.trim().split('\n')) {
    const field = (name: string): number => Number(new RegExp(`\\b${name}=(-?\\d+)`).exec(line)?.[1]);
    const size = field('bytes');
    const moved = {
      rank: field('rank'),
      channel: field('channel'),
      peer: field('peer'),
      sends: field('sends') === 1,
      bytes: field('moved'),
    };
    bySize.set(size, [...(bySize.get(size) ?? []), moved]);
  }
  return bySize;
}

/** By channel: the ranks in the order in which data went round, from rank 0 on. */
export function ringsOf(moved: readonly Moved[]): Map<number, number[]> {
  const rings = new Map<number, number[]>();
  const sent = moved.filter(({ channel, sends, bytes }) => channel >= 0 && sends && bytes > 0);
  for (const channel of new Set(sent.map((edge) => edge.channel))) {
    const next = new Map(sent.filter((edge) => edge.channel === channel).map(({ rank, peer }) => [rank, peer]));
    const ring = [0];
    for (let at = next.get(0); at !== undefined && at !== 0 && ring.length <= next.size; at = next.get(at))
      ring.push(at);
    rings.set(channel, ring);
  }
  return rings;
}
