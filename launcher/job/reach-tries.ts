/** How hosts of a job try each other's addresses: each those of its successor, and all those of rank 0's host, where programs meet. */
import { limitOf, type ReachAnswer, type ReachQuestion, type ReachTarget } from '../../control/messages/reach.ts';
import type { HostNic } from '../../control/messages/nic.ts';

/** Beside the time that its tries may take. A host that answers no sooner is not waited for. */
const GRACE_MS = 700;

export interface ReachHost {
  readonly name: string;
  /** Where it may be reached, best first; at least one. */
  readonly addresses: readonly string[];
  readonly nics: readonly HostNic[];
  /** Null: it did not answer. */
  ask(question: ReachQuestion): Promise<ReachAnswer | null>;
}

/** Indices of hosts. */
export interface Pair {
  readonly from: number;
  readonly to: number;
}

export interface Tried extends Pair {
  /** Addresses of `to` that lead to it; null: `from` did not say. */
  readonly found: readonly string[] | null;
}

export function pairsOf(count: number, meeting: number): Pair[] {
  const successors = Array.from({ length: count }, (_, from) => ({ from, to: (from + 1) % count }));
  return [
    ...successors,
    ...successors.flatMap(({ from, to }) => (from === meeting || to === meeting ? [] : [{ from, to: meeting }])),
  ];
}

/** Null: it has not said where it listens. */
export async function portOf(host: ReachHost): Promise<number | null> {
  const answer = await inTime(host.ask({ type: 'listen' }), limitOf(false));
  return answer?.type === 'listening' ? answer.port : null;
}

export type Tries = Pick<ReachTarget, 'addresses' | 'sources' | 'thorough'>;

/** Each host is asked once, of all that it is to try; all of `pairs` in the same manner. */
export async function tryAll(
  hosts: readonly ReachHost[],
  ports: readonly (number | null)[],
  pairs: readonly Pair[],
  triesOf: (pair: Pair) => Tries,
): Promise<Tried[]> {
  const byHost = Map.groupBy(pairs, ({ from }) => from);
  const asked = Array.from(byHost, async ([from, its]): Promise<Tried[]> => {
    const targets = its.map(
      (pair): ReachTarget => ({ host: hosts[pair.to]?.name ?? '', port: ports[pair.to] ?? 0, ...triesOf(pair) }),
    );
    const limit = limitOf(targets.some(({ thorough }) => thorough));
    // Who has not said where it listens is not asked again.
    const answer =
      ports[from] === null ? null : await inTime(hosts[from]?.ask({ type: 'probe', targets }) ?? null, limit);
    const found = answer?.type === 'reached' ? answer.found : [];
    return its.map((pair, index) => ({ ...pair, found: found[index] ?? null }));
  });
  return (await Promise.all(asked)).flat();
}

/** Null: it took longer than `limitMs` and some more. */
async function inTime<T>(answer: Promise<T | null> | null, limitMs: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs + GRACE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
