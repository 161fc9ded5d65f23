/**
 * PCI switches of Broadcom (PEX88000 and PEX89000) show as two levels of switches, although all their ports reach each other at full speed: the
 * lower level would look like a bottleneck that is not there.
 */
import type { Draft, DraftNode } from './draft.ts';

export function flattenSwitches(draft: Draft): void {
  const done = new Set<DraftNode>();
  for (;;) {
    const upper = draft.nodes.find((node) => !done.has(node) && familyOf(node, 0) !== null);
    if (upper === undefined) return;
    done.add(upper);
    const family = familyOf(upper, 0);
    const lower = upper.links.map(({ to }) => to).filter((node) => familyOf(node, 1) === family);
    upper.links = upper.links.filter(({ to }) => !lower.includes(to));
    for (const node of lower) {
      for (const link of node.links) {
        if (link.to === upper) continue;
        upper.links.push(link);
        const back = link.to.links.find(({ to }) => to === node);
        if (back !== undefined) back.to = upper;
      }
      draft.remove(node);
    }
  }
}

/** `level`: 1 of the switches below. */
function familyOf({ facts }: DraftNode, level: 0 | 1): string | null {
  if (facts.kind !== 'pci') return null;
  const model = facts.model.slice(0, 13);
  if (model === '1000c0101000a') return 'PEX88000';
  return model === `1000c0301000${level}` ? 'PEX89000' : null;
}
