/**
 * A topology in which every GPU counts: machines are drawn whole, also those GPUs that no rank uses, which NCCL leaves out. What providers ship for
 * NCCL to fill in has GPUs without a number.
 */
import * as attribute from '../../control/topology/attribute.ts';
import { elementsOf, everyElement } from '../../control/topology/element.ts';
import type { Child, Element } from '../../control/topology/element.ts';

interface Completed {
  readonly system: Element;
  /** Of its GPUs those that had no rank. */
  readonly unused: ReadonlySet<Element>;
}

/** A copy. GPUs without a `rank` get one; all are numbered anew where some have no number or two have one. */
export function completed(system: Element): Completed {
  const gpus = [...everyElement(system)].filter(({ name }) => name === 'gpu');
  const numbers = gpus.map((gpu) => (gpu.attributes.has('dev') ? attribute.whole(gpu, 'dev') : null));
  const isNumbered = !numbers.includes(null) && new Set(numbers).size === numbers.length;
  const numberOf = new Map(gpus.map((gpu, index) => [gpu, isNumbered ? (numbers[index] ?? index) : index]));
  const unused = new Set<Element>();
  return { system: copied(system), unused };

  function copied(from: Element): Element {
    const attributes = new Map(from.attributes);
    const children = from.children.map((child): Child => (child.kind === 'element' ? copied(child) : child));
    const copy: Element = { ...from, attributes, children };
    const number = numberOf.get(from);
    if (number === undefined) return copy;
    if (!attributes.has('rank')) unused.add(copy);
    attributes.set('dev', `${number}`).set('rank', attributes.get('rank') ?? `${number}`);
    return copy;
  }
}

/** Whether GPUs had to be numbered, for the reader to know. */
export function isRenumbered(system: Element): boolean {
  const gpus = [...everyElement(system)].flatMap((parent) => elementsOf(parent, 'gpu'));
  const numbers = gpus.map((gpu) => gpu.attributes.get('dev'));
  return numbers.includes(undefined) || new Set(numbers).size < numbers.length;
}
