/** How many channels there can be at most, by what leaves each GPU and each NIC: what no search can beat need not be searched. */
import type { Machine } from '../machine/node.ts';
import type { Candidates } from './candidates.ts';
import type { Attempt } from './channels.ts';
import type { Use } from './loads.ts';

export function mostChannels(machine: Machine, candidates: Candidates, attempt: Attempt): number {
  const { pattern, acrossHosts, between, most } = attempt;
  const { gpus } = machine;
  let bound = most;
  if (acrossHosts) {
    const ports = new Set(candidates.startNets.map((net) => candidates.portOf[net] ?? 0));
    bound = Math.min(
      bound,
      sum(ports, (port) => Math.floor((candidates.ports[port] ?? 0) / between)),
    );
    const share = pattern === 'balancedTree' && gpus.length > 1 ? 0.5 : 1;
    bound = Math.min(bound, leaving(machine, candidates.uses.fromNet, between, 1, attempt));
    bound = Math.min(bound, leaving(machine, candidates.uses.toNet, between, share, attempt));
  }
  if (pattern === 'collnetDirect') return Math.min(bound, gpus.length);
  if (gpus.length < 2) return bound;
  const carried = candidates.uses.between.map((uses) => channelsFrom(machine, uses, attempt));
  if (pattern === 'ring' && !acrossHosts) return Math.min(bound, ...carried);
  // All GPUs but one hand on inside the host.
  return Math.min(bound, Math.floor(sum(carried, (channels) => channels) / (gpus.length - 1)));
}

/** Over all links by which a GPU's paths to the others begin, as far as they are allowed. */
function channelsFrom({ links }: Machine, uses: readonly Use[], { inside, distanceInside }: Attempt): number {
  const first = new Map<number, number>();
  for (const use of uses) {
    const [link] = use.links;
    if (link !== undefined && use.distance <= distanceInside) {
      first.set(link, Math.min(use.factors[0] ?? 1, first.get(link) ?? Number.POSITIVE_INFINITY));
    }
  }
  return sum(first, ([link, factor]) => Math.floor((links[link]?.bandwidth ?? 0) / Math.round(inside * factor)));
}

/** Each way between a GPU and a NIC has one link at a GPU: what all of those carry together. `share`: of a channel's flow. */
function leaving(
  { links }: Machine,
  uses: readonly (readonly Use[])[],
  speed: number,
  share: number,
  { distanceBetween }: Attempt,
): number {
  const leastFactors = new Map<number, number>();
  for (const use of uses.flat()) {
    if (use.distance > distanceBetween) continue;
    use.links.forEach((index, i) => {
      const link = links[index];
      const isAtGpu = link?.from.kind === 'gpu' || link?.to.kind === 'gpu';
      if (link === undefined || !isAtGpu || link.kind === 'nvlink') return;
      const factor = use.factors[i] ?? 1;
      if (factor >= 1) leastFactors.set(index, Math.min(factor, leastFactors.get(index) ?? factor));
    });
  }
  return Math.floor(
    share *
      sum(leastFactors, ([index, factor]) =>
        Math.floor((links[index]?.bandwidth ?? 0) / Math.round(speed * share * factor)),
      ),
  );
}

function sum<Item>(items: Iterable<Item>, value: (item: Item) => number): number {
  let total = 0;
  for (const item of items) total += value(item);
  return total;
}
