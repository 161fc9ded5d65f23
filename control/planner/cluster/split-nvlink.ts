/** Machines whose NVLinks join GPUs in two groups, with a slower path between them, such as from socket to socket. */
import type { MachineRoutes } from '../machine/routes.ts';

/**
 * True if exactly two groups of GPUs are joined by NVLinks. One chain through both crosses the slower path in one direction only, so a second channel
 * in the other direction doubles what trees carry. NCCL's model has the same rule (src/graph/paths.cc).
 */
export function hasSplitNvlinks(routes: MachineRoutes): boolean {
  const { gpus } = routes.machine;
  const groupOf = gpus.map((_, index) => index);
  for (const [index, gpu] of gpus.entries()) {
    for (let other = index + 1; other < gpus.length; other++) {
      const peer = gpus[other];
      if (peer !== undefined && routes.path(gpu, peer).type === 'NVL') groupOf[other] = groupOf[index] ?? index;
    }
  }
  const sizes = new Map<number, number>();
  for (const group of groupOf) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return [...sizes.values()].filter((size) => size > 1).length === 2;
}
