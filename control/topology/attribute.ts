/** Attributes of an element as what they mean; what they cannot mean is a TopologyError. */
import { placeOf, TopologyError } from './element.ts';
import type { Element } from './element.ts';

export function text(from: Element, name: string, otherwise?: string): string {
  const value = from.attributes.get(name) ?? otherwise;
  if (value === undefined) throw new TopologyError(`${placeOf(from)}: the attribute ${name} is missing`);
  return value;
}

/** Decimal, or hexadecimal with 0x. */
export function whole(from: Element, name: string, otherwise?: number): number {
  const value = from.attributes.get(name);
  if (value === undefined && otherwise !== undefined) return otherwise;
  const number = /^\s*-?(?:[0-9]+|0x[0-9a-f]+)\s*$/iu.test(text(from, name)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw new TopologyError(`${placeOf(from)}: ${name}="${value}", expected a whole number`);
  }
  return number;
}

/** Lanes of a PCI link; 0 where nobody knows, for which NCCL may write nothing between the quotes. */
export function lanes(from: Element): number {
  return from.attributes.get('link_width') === '' ? 0 : whole(from, 'link_width', 0);
}

export function decimal(from: Element, name: string, otherwise: number): number {
  const value = from.attributes.get(name);
  const number = value === undefined ? otherwise : Number(value);
  if (!Number.isFinite(number)) throw new TopologyError(`${placeOf(from)}: ${name}="${value}", expected a number`);
  return number;
}

/** A PCI address `0000:1b:00.0` (domain:bus:device.function) as one number, by which equal ones are found whatever their letters. */
export function busId(from: Element, name = 'busid'): number {
  const value = text(from, name);
  if (!/^[0-9a-f]+(?:[:.][0-9a-f]+)*$/iu.test(value)) {
    throw new TopologyError(`${placeOf(from)}: ${name}="${value}" is no PCI address, such as 0000:1b:00.0`);
  }
  return Number.parseInt(value.replaceAll(/[:.]/gu, ''), 16);
}
