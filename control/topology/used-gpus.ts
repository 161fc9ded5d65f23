/** Which GPUs of a machine have ranks. */
import * as attribute from './attribute.ts';
import { elementsOf, everyElement } from './element.ts';
import type { Child, Element } from './element.ts';

/** Those that have a rank, by rank; if none has, all in the order of the file. */
export function gpuElements(system: Element): Element[] {
  const all = [...everyElement(system)].flatMap((pci) => elementsOf(pci, 'gpu'));
  const ranked = all.filter((gpu) => gpu.attributes.has('rank'));
  if (ranked.length === 0) return all;
  return ranked.toSorted((one, other) => attribute.whole(one, 'rank') - attribute.whole(other, 'rank'));
}

/** By PCI address, as attribute.busId has it: several where ranks may use parts of a GPU, or a processor has several. */
export function gpusByAddress(system: Element): Map<number, Element[]> {
  const found = new Map<number, Element[]>();
  for (const pci of everyElement(system)) {
    for (const gpu of elementsOf(pci, 'gpu')) {
      const address = attribute.busId(pci);
      found.set(address, [...(found.get(address) ?? []), gpu]);
    }
  }
  return found;
}

/** The same machine with ranks 0 to `count` - 1 on its first GPUs and none on the others. */
export function withRanks(system: Element, count: number): Element {
  return withRanksOn(system, gpuElements(system).slice(0, count));
}

/** The same machine with a rank on each of these GPUs, numbered by the list's order, and none on the others. */
export function withRanksOn(system: Element, gpus: readonly Element[]): Element {
  const ranks = new Map(gpus.map((gpu, rank) => [gpu, rank]));
  const copy = (from: Element): Element => {
    const attributes = new Map(from.attributes);
    if (from.name === 'gpu') {
      const rank = ranks.get(from);
      if (rank === undefined) attributes.delete('rank');
      else attributes.set('rank', String(rank));
    }
    const children = from.children.map((child): Child => (child.kind === 'element' ? copy(child) : child));
    return { ...from, attributes, children };
  };
  return copy(system);
}
