/** The curves of one picture: ours and theirs on plain buffers and windows, and the floor. */
import { busFactor, floorOf } from './floor.ts';
import type { Buffers, Library, MeasuredCollective, Point, Results, Timing } from './results.ts';

export interface Curve {
  /** Of its line in the style sheet. */
  readonly kind: 'ours' | 'ours-window' | 'theirs' | 'theirs-window' | 'floor';
  readonly label: string;
  readonly points: readonly Point[];
}

const MEASURED: readonly { kind: Curve['kind']; label: string; library: Library; buffers: Buffers }[] = [
  { kind: 'theirs', label: 'NCCL', library: 'theirs', buffers: 'plain' },
  { kind: 'theirs-window', label: 'NCCL, window', library: 'theirs', buffers: 'window' },
  { kind: 'ours', label: 'ncclrun', library: 'ours', buffers: 'plain' },
  { kind: 'ours-window', label: 'ncclrun, window', library: 'ours', buffers: 'window' },
];

/** Those that have points; what lies below comes first. */
export function curvesOf(results: Results, collective: MeasuredCollective, timing: Timing): Curve[] {
  const curves = MEASURED.map(
    ({ kind, label, library, buffers }): Curve => ({
      kind,
      label,
      points: results.curve({ collective, timing, library, buffers }),
    }),
  ).filter(({ points }) => points.length > 0);
  const { limits } = results;
  if (limits === null || curves.length === 0) return curves;
  const sizes = curves.flatMap(({ points }) => points.map(({ bytes }) => bytes));
  const floor = powersOfTwo(Math.min(...sizes), Math.max(...sizes)).map((bytes): Point => {
    const microseconds = floorOf(collective, timing, bytes, limits);
    return { bytes, microseconds, bus: (bytes * busFactor(collective, limits.ranks)) / microseconds / 1000 };
  });
  return [{ kind: 'floor', label: 'floor', points: floor }, ...curves];
}

/** And the ends themselves; four to each doubling, so that bends are seen. */
function powersOfTwo(from: number, to: number): number[] {
  const values: number[] = [];
  for (let value = from; value < to; value *= 2 ** 0.25) values.push(value);
  return [...values, to];
}

/** What a panel shows of a curve: sizes, and a value of each. */
export interface Line {
  readonly kind: Curve['kind'];
  readonly places: readonly (readonly [bytes: number, value: number])[];
}

/** Our time by theirs, of what both have, with the line where they are equal. */
export function ratiosOf(curves: readonly Curve[]): Line[] {
  const ratios = (['ours', 'ours-window'] as const).flatMap((kind): Line[] => {
    const [ours, theirs] = [kind, kind === 'ours' ? 'theirs' : 'theirs-window'].map((name) =>
      curves.find((curve) => curve.kind === name),
    );
    const times = new Map(theirs?.points.map(({ bytes, microseconds }) => [bytes, microseconds]));
    const places = (ours?.points ?? []).flatMap(({ bytes, microseconds }): [number, number][] => {
      const time = times.get(bytes);
      return time === undefined ? [] : [[bytes, microseconds / time]];
    });
    return places.length === 0 ? [] : [{ kind, places }];
  });
  if (ratios.length === 0) return [];
  const sizes = ratios.flatMap(({ places }) => places.map(([bytes]) => bytes));
  const equal: Line = { kind: 'theirs', places: [Math.min(...sizes), Math.max(...sizes)].map((bytes) => [bytes, 1]) };
  return [equal, ...ratios];
}
