/** Attributes of topology files: what is read as a number, and the borders of what is accepted. */
import { describe, expect, it } from 'vitest';
import {
  busId,
  decimal,
  deviceClass,
  lanes,
  linkSpeed,
  textAttribute,
  whole,
  wholeWithin,
} from '../../control/topology/attribute.ts';
import { element, type Element } from '../../control/topology/element.ts';

function having(attributes: Record<string, string>): Element {
  return element('pci', attributes);
}

function within(value: number): number {
  return wholeWithin(having({ dev: `${value}` }), 'dev', 2, 5);
}

describe('a whole number', () => {
  it.each([
    ['0', 0],
    ['-7', -7],
    [' 42 ', 42],
    ['0x1f', 31],
  ])('"%s" is read as %d', (value, number) => {
    expect(whole(having({ dev: value }), 'dev')).toBe(number);
  });

  it.each(['', '1.5', '1e3', 'x', '99999999999999999'])('"%s" is refused as a whole number', (value) => {
    expect(() => whole(having({ dev: value }), 'dev')).toThrow(`dev="${value}", expected a whole number`);
  });

  it('an absent attribute is refused, or replaced by the default', () => {
    expect(() => whole(having({}), 'dev')).toThrow('dev');
    expect(whole(having({}), 'dev', 3)).toBe(3);
    expect(textAttribute(having({}), 'name', 'none')).toBe('none');
  });

  it('a number on the border of its range is accepted, and the next one is refused', () => {
    expect([2, 5].map(within)).toEqual([2, 5]);
    for (const value of [1, 6]) expect(() => within(value)).toThrow('expected a whole number from 2 to 5');
  });
});

describe('a PCI link', () => {
  it.each([
    ['', 0],
    ['0', 0],
    ['32', 32],
    ['63', 63],
    ['255', 255],
  ])('a link_width of "%s" is %d lanes', (value, number) => {
    expect(lanes(having({ link_width: value }))).toBe(number);
  });

  it('a link without a link_width has no known lanes', () => {
    expect(lanes(having({}))).toBe(0);
  });

  it.each(['-1', '33', '64', '256'])('a link_width of "%s" is refused', (value) => {
    expect(() => lanes(having({ link_width: value }))).toThrow('expected a number of lanes from 0 to 32');
  });

  it('a speed is what sysfs writes, or unknown', () => {
    for (const speed of ['', '16.0 GT/s PCIe', '5 GT/s', 'Unknown speed']) {
      expect(linkSpeed(having({ link_speed: speed }))).toBe(speed);
    }
    expect(() => linkSpeed(having({ link_speed: 'fast' }))).toThrow('link_speed="fast" is no speed of a PCI link');
  });

  it('a class is hexadecimal or empty', () => {
    for (const value of ['', '0x030200']) expect(deviceClass(having({ class: value }))).toBe(value);
    expect(() => deviceClass(having({ class: '030200' }))).toThrow('class="030200" is no class of PCI devices');
  });
});

it('a decimal number has a default, and refuses words', () => {
  expect(decimal(having({ speed: '12.5' }), 'speed', 1)).toBe(12.5);
  expect(decimal(having({}), 'speed', 1)).toBe(1);
  expect(() => decimal(having({ speed: 'much' }), 'speed', 1)).toThrow('speed="much", expected a number');
});

it('equal PCI addresses are one number, whatever their letters', () => {
  expect(busId(having({ busid: '0000:1B:00.0' }))).toBe(busId(having({ busid: '0000:1b:00.0' })));
  expect(busId(having({ busid: '0000:1b:00.0' }))).toBe(0x1b000);
  expect(() => busId(having({ busid: 'slot 3' }))).toThrow('busid="slot 3" is no PCI address');
});
