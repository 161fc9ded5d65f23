/** Times as Markdown: of each size ours, theirs, the ratio, and how far the floor is. */
import { floorOf } from './floor.ts';
import { binarySizeText, timeText } from './numbers.ts';
import type { Buffers, Library, MeasuredCollective, Point, Results, Timing } from './results.ts';

export function tableOf(results: Results, collective: MeasuredCollective, timing: Timing): string {
  const pointsOf = (library: Library, buffers: Buffers): Map<number, Point> =>
    new Map(results.curve({ collective, timing, library, buffers }).map((point) => [point.bytes, point]));
  const columns = (['plain', 'window'] as const)
    .map((buffers) => ({ buffers, ours: pointsOf('ours', buffers), theirs: pointsOf('theirs', buffers) }))
    .filter(({ ours, theirs }) => ours.size + theirs.size > 0);
  const sizes = new Set(columns.flatMap(({ ours, theirs }) => [...ours.keys(), ...theirs.keys()]));
  const { limits } = results;
  const heads = columns.flatMap(({ buffers }) => {
    const suffix = buffers === 'window' ? ', window' : '';
    return [`ours${suffix}, µs`, `NCCL${suffix}, µs`, 'ratio'];
  });
  const head = ['bytes', ...heads, 'GB/s', ...(limits === null ? [] : ['floor, µs', 'of the floor'])];
  const rows = [...sizes]
    .toSorted((one, other) => one - other)
    .map((bytes) => {
      const cells = columns.flatMap(({ ours, theirs }) => pairCells(ours.get(bytes), theirs.get(bytes)));
      const plain = columns[0]?.ours.get(bytes);
      const bus = plain === undefined ? '' : plain.bus.toFixed(1);
      const floor = limits === null ? [] : floorCells(floorOf(collective, timing, bytes, limits), plain);
      return [binarySizeText(bytes), ...cells, bus, ...floor];
    });
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return `${lines.join('\n')}\n`;
}

function cell(point: Point | undefined): string {
  return point === undefined ? '' : timeText(point.microseconds);
}

/** A ratio above 1, which is slower, is bold. */
function pairCells(ours: Point | undefined, theirs: Point | undefined): string[] {
  if (ours === undefined || theirs === undefined) return [cell(ours), cell(theirs), ''];
  const ratio = ours.microseconds / theirs.microseconds;
  const words = ratio.toFixed(2);
  return [cell(ours), cell(theirs), ratio > 1.005 ? `**${words}**` : words];
}

function floorCells(floor: number, ours: Point | undefined): string[] {
  return [timeText(floor), ours === undefined ? '' : (floor / ours.microseconds).toFixed(2)];
}
