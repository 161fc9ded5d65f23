import { expect, test } from 'vitest';
import { smallFloatBits } from '../../worker/small-float.ts';
import type { FloatFormat } from '../../worker/small-float.ts';
import { seededRandom } from '../rig/random.ts';

const half = { significandBits: 11, exponentBits: 5 };
const bfloat16 = { significandBits: 8, exponentBits: 8 };
const e4m3 = { significandBits: 4, exponentBits: 4 };
const e5m2 = { significandBits: 3, exponentBits: 5 };

test('zeros and numbers just below a power of two become the nearest ones', () => {
  const bits = [0, -0, 1 - 2 ** -53, 2 - 2 ** -52, 2 ** -14 * (1 - 2 ** -53), 65_536 * (1 - 2 ** -53)];
  expect(bits.map((value) => smallFloatBits(value, half))).toEqual([0, 0x8000, 0x3c00, 0x4000, 0x0400, 0x7c00]);
});

test('smallFloatBits rounds like Float16Array', () => {
  const bits = Uint16Array.from({ length: 0x7c00 }, (_, index) => index);
  const numbers = new Float16Array(bits.buffer);
  const random = seededRandom(7);
  for (const [index, number] of numbers.entries()) {
    const next = numbers[index + 1] ?? 65_536;
    const between = number + ((next - number) * random(5)) / 4; // the tie among them
    for (const value of [number, -number, between, -between]) {
      const [expected] = new Uint16Array(Float16Array.of(value).buffer);
      if (smallFloatBits(value, half) !== expected) expect({ value, is: smallFloatBits(value, half) }).toBe(expected);
    }
  }
});

const known: readonly (readonly [string, FloatFormat, readonly (readonly [number, number])[]])[] = [
  [
    'bfloat16',
    bfloat16,
    [
      [1, 0x3f80],
      [-2, 0xc000],
      [1 + 2 ** -8, 0x3f80],
      [1 + 3 * 2 ** -8, 0x3f82],
      [3.4e38, 0x7f80],
      [2 ** -133, 1],
    ],
  ],
  [
    'e4m3',
    e4m3,
    [
      [1, 0x38],
      [448, 0x7e],
      [500, 0x7f],
      [-Infinity, 0xff],
      [2 ** -9, 1],
      [2 ** -10, 0],
      [Number.NaN, 0x7f],
    ],
  ],
  [
    'e5m2',
    e5m2,
    [
      [1, 0x3c],
      [57_344, 0x7b],
      [61_440, 0x7c],
      [-Infinity, 0xfc],
      [2 ** -16, 1],
      [-0, 0x80],
      [Number.NaN, 0x7f],
    ],
  ],
];

test.each(known)('smallFloatBits encodes known values of %s', (_, format, pairs) => {
  expect(pairs.map(([value]) => [value, smallFloatBits(value, format)])).toEqual(pairs);
});
