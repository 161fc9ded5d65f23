/**
 * Trees carry data down (from the parent) and up. A search lays the path down; where a machine's paths differ in the two directions (a GPU that
 * sends by another GPU's NIC receives past it), the search has to check the path up by itself; of the data alone, without answers.
 */
import type { Candidates } from './candidates.ts';
import type { Attempt } from './channels.ts';
import type { FoundChannel } from './graph.ts';
import { Loads } from './loads.ts';
import type { Use } from './loads.ts';

export function fitsUpwards(candidates: Candidates, attempt: Attempt, channels: readonly FoundChannel[]): boolean {
  const { pattern, inside, between } = attempt;
  if (pattern === 'ring' || pattern === 'collnetDirect') return true;
  const { uses, gpus, nets: netCount } = candidates;
  const loads = new Loads(candidates.bandwidths, uses);
  const fits = (use: Use | undefined, speed: number): boolean =>
    use === undefined || loads.take(use, speed, use.first + use.hops);
  return channels.every(({ order, nets }) => {
    const isChain = order.every(
      (gpu, index) => index === 0 || fits(uses.between[gpu * gpus + (order[index - 1] ?? 0)], inside),
    );
    if (!isChain || nets === null) return isChain;
    const [first = 0, second = first] = order;
    const [parent, child] = nets;
    if (!fits(uses.toNet[first * netCount + parent], between)) return false;
    if (pattern === 'tree') return fits(uses.fromNet[child * gpus + first], between);
    if (pattern === 'splitTree') return fits(uses.fromNet[child * gpus + second], between);
    return (
      fits(uses.fromNet[child * gpus + first], between / 2) && fits(uses.fromNet[child * gpus + second], between / 2)
    );
  });
}
