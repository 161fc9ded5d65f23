/** From values to places in a picture. */
import { binarySizeText } from './numbers.ts';

export interface Tick {
  readonly at: number;
  /** Empty: a line only. */
  readonly label: string;
}

export interface Axis {
  place(value: number): number;
  readonly ticks: readonly Tick[];
}

/** Of a panel, in the picture's units: of y, `low` is the larger one. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

function logarithmic(min: number, max: number, { low, high }: Range): (value: number) => number {
  const span = Math.log(max / min) || 1;
  return (value) => low + (Math.log(value / min) / span) * (high - low);
}

/** A line for each third doubling; at most `labels` of them have their size written. */
export function sizeAxis(values: readonly number[], range: Range, labels = 5): Axis {
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const place = logarithmic(min, max, range);
  const first = Math.ceil(Math.log2(min) / 3) * 3;
  const powers: number[] = [];
  for (let power = first; 2 ** power <= max; power += 3) powers.push(power);
  const each = Math.ceil(powers.length / labels);
  const ticks = powers.map((power, index) => ({
    at: place(2 ** power),
    label: index % each === 0 ? binarySizeText(2 ** power) : '',
  }));
  return { place, ticks };
}

/** Powers of ten, and between them 2 and 5 without a label. */
export function timeAxis(values: readonly number[], range: Range): Axis {
  const min = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const max = Math.max(...values) * 1.2;
  const place = logarithmic(min, max, range);
  const ticks: Tick[] = [];
  for (let decade = min; decade <= max; decade *= 10) {
    for (const digit of [1, 2, 5]) {
      if (decade * digit <= max) ticks.push({ at: place(decade * digit), label: digit === 1 ? String(decade) : '' });
    }
  }
  return { place, ticks };
}

/** From 0 on, in round steps. */
export function linearAxis(values: readonly number[], { low, high }: Range): Axis {
  const max = (Math.max(...values) || 1) * 1.08;
  const place = (value: number): number => low + (value / max) * (high - low);
  const rough = max / 5;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * decade).find((one) => one >= rough) ?? rough;
  const ticks: Tick[] = [];
  for (let index = 0; index * step <= max; index++) {
    const value = Number((index * step).toPrecision(6));
    ticks.push({ at: place(value), label: String(value) });
  }
  return { place, ticks };
}
