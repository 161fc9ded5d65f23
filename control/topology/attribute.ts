/** Attributes of an element as what they mean; what they cannot mean is a TopologyError. */
import { locationOf, TopologyError } from './element.ts';
import type { Element } from './element.ts';

export function textAttribute(from: Element, name: string, otherwise?: string): string {
  const value = from.attributes.get(name) ?? otherwise;
  if (value === undefined) throw new TopologyError(`${locationOf(from)}: the attribute ${name} is missing`);
  return value;
}

/** Decimal, or hexadecimal with 0x. */
export function whole(from: Element, name: string, otherwise?: number): number {
  const value = from.attributes.get(name);
  if (value === undefined && otherwise !== undefined) return otherwise;
  const number = /^\s*-?(?:[0-9]+|0x[0-9a-f]+)\s*$/iu.test(textAttribute(from, name)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw new TopologyError(`${locationOf(from)}: ${name}="${value}", expected a whole number`);
  }
  return number;
}

/** The same, of so much at least and at most. */
export function wholeWithin(from: Element, name: string, min: number, max: number, otherwise?: number): number {
  const number = whole(from, name, otherwise);
  if (number >= min && number <= max) return number;
  throw new TopologyError(
    `${locationOf(from)}: ${name}="${from.attributes.get(name)}", expected a whole number from ${min} to ${max}`,
  );
}

export const MAX_LANES = 32;
/** What the kernel shows for a link of which it knows nothing: all bits of the field. NCCL counts them as lanes, and so does the model. */
const UNKNOWN_LANES: readonly number[] = [63, 255];

/** Lanes of a PCI link; 0 where nobody knows, for which NCCL may write nothing between the quotes. */
export function lanes(from: Element): number {
  const number = from.attributes.get('link_width') === '' ? 0 : whole(from, 'link_width', 0);
  if ((number >= 0 && number <= MAX_LANES) || UNKNOWN_LANES.includes(number)) return number;
  throw new TopologyError(
    `${locationOf(from)}: link_width="${number}", expected a number of lanes from 0 to ${MAX_LANES}; unknown is 0, 63 or 255`,
  );
}

/** Of a PCI link, as sysfs writes it; empty where nobody knows. */
export function linkSpeed(from: Element): string {
  const speed = textAttribute(from, 'link_speed', '');
  if (speed === '' || /^(?:[0-9]+(?:\.[0-9]+)? ?GT\/s(?: PCIe)?|unknown.*)$/iu.test(speed)) return speed;
  throw new TopologyError(
    `${locationOf(from)}: link_speed="${speed}" is no speed of a PCI link, such as "16.0 GT/s PCIe"; it may be empty`,
  );
}

/** Of a PCI device, hexadecimal as sysfs writes it; empty where nobody knows. */
export function deviceClass(from: Element): string {
  const value = textAttribute(from, 'class', '');
  if (value === '' || /^0x[0-9a-f]{1,8}$/iu.test(value)) return value;
  throw new TopologyError(
    `${locationOf(from)}: class="${value}" is no class of PCI devices, such as 0x030200 (a GPU) or 0x060400 (a switch)`,
  );
}

export function decimal(from: Element, name: string, otherwise: number): number {
  const value = from.attributes.get(name);
  const number = value === undefined ? otherwise : Number(value);
  if (!Number.isFinite(number)) throw new TopologyError(`${locationOf(from)}: ${name}="${value}", expected a number`);
  return number;
}

/** A PCI address `0000:1b:00.0` (domain:bus:device.function) as one number, by which equal ones are found whatever their letters. */
export function busId(from: Element, name = 'busid'): number {
  const value = textAttribute(from, name);
  if (!/^[0-9a-f]+(?:[:.][0-9a-f]+)*$/iu.test(value)) {
    throw new TopologyError(`${locationOf(from)}: ${name}="${value}" is no PCI address, such as 0000:1b:00.0`);
  }
  return Number.parseInt(value.replaceAll(/[:.]/gu, ''), 16);
}
