/**
 * Where everything stands. A processor and a switch are bars over all that is below them, so every link is a straight line down; GPUs stand side by
 * side on one line at the bottom, where the NVLinks begin; NICs are piled up beside them.
 */
import type { CpuPart, GpuPart, SwitchPart, TopologyPart } from '../part.ts';
import { pileHeight, pilesOf, pileWidth } from './pile.ts';
import type { Chip } from './pile.ts';
import { textWidth } from './text-width.ts';

const GPU = { width: 88, height: 62 };
const SWITCH_HEIGHT = 26;
const CPU_HEIGHT = 44;
/** From a bar to what is below it: room for what the link is. */
const DROP = 46;
/** Beside a GPU, for its line to the processor. */
const LANE = 64;
const GAP = 14;
const PAD = 14;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export type Placed =
  | { readonly kind: 'switch'; readonly part: SwitchPart; readonly box: Box; readonly below: readonly Placed[] }
  | { readonly kind: 'gpu'; readonly part: GpuPart; readonly box: Box; readonly lane: number | null }
  | { readonly kind: 'pile'; readonly chips: readonly Chip[]; readonly box: Box };

export interface PlacedCpu {
  readonly part: CpuPart;
  readonly frame: Box;
  readonly bar: Box;
  readonly below: readonly Placed[];
}

/** A subtree before its place is known. */
type Sized =
  | {
      readonly kind: 'switch';
      readonly part: SwitchPart;
      readonly bar: number;
      readonly width: number;
      readonly below: readonly Sized[];
    }
  | { readonly kind: 'gpu'; readonly part: GpuPart; readonly width: number; readonly hasLane: boolean }
  | { readonly kind: 'pile'; readonly chips: readonly Chip[]; readonly width: number };

/** Side by side, `between` apart, from `left` and `top` on. */
export function layOut(cpus: readonly CpuPart[], left: number, top: number, between: number): PlacedCpu[] {
  const sized = cpus.map((part) => ({ part, below: sizes(part.parts) }));
  const start = top + PAD + CPU_HEIGHT;
  const bottom = Math.max(...sized.map(({ below }) => lowest(below, start)), start);
  let x = left;
  return sized.map(({ part, below }) => {
    const words = Math.max(textWidth(part.name, 14, true), textWidth(part.model, 11)) + 24;
    const inner = Math.max(span(below), words, 150);
    const frame = { x, y: top, width: inner + 2 * PAD, height: bottom + PAD - top };
    const bar = { x: x + PAD, y: top + PAD, width: inner, height: CPU_HEIGHT };
    x += frame.width + between;
    return { part, frame, bar, below: placeColumns(below, bar.x + (inner - span(below)) / 2, start, bottom) };
  });
}

/** GPUs and switches as in the file, then what is piled up. */
function sizes(parts: readonly TopologyPart[]): Sized[] {
  const columns = parts.flatMap((part): Sized[] => {
    if (part.kind === 'switch') return [sizedSwitch(part)];
    if (part.kind !== 'gpu') return [];
    const hasLane = part.c2c !== null || part.nvlinks.some(({ to }) => to.type === 'cpu');
    return [{ kind: 'gpu', part, width: GPU.width + (hasLane ? LANE : 0), hasLane }];
  });
  const piles = pilesOf(parts).map((chips): Sized => ({ kind: 'pile', chips, width: pileWidth(chips) }));
  return [...columns, ...piles];
}

function sizedSwitch(part: SwitchPart): Sized {
  const below = sizes(part.parts);
  const words = textWidth(part.busId, 11) + 16;
  const width = Math.max(span(below), words);
  const [only] = below;
  const bar = below.length === 1 && only !== undefined ? Math.max(core(only), words) : width;
  return { kind: 'switch', part, bar, width, below };
}

/** What of a column's width is no lane. */
function core(sized: Sized): number {
  if (sized.kind === 'gpu') return GPU.width;
  return sized.kind === 'switch' ? sized.bar : sized.width;
}

function span(columns: readonly Sized[]): number {
  return columns.reduce((sum, { width }) => sum + width, Math.max(0, columns.length - 1) * GAP);
}

/** The lower end of the lowest; `top`: the lower end of what is above them. */
function lowest(columns: readonly Sized[], top: number): number {
  const y = top + DROP;
  return Math.max(
    ...columns.map((column) => {
      if (column.kind === 'gpu') return y + GPU.height;
      if (column.kind === 'pile') return y + pileHeight(column.chips);
      return lowest(column.below, y + SWITCH_HEIGHT);
    }),
    top,
  );
}

function placeColumns(columns: readonly Sized[], left: number, top: number, bottom: number): Placed[] {
  let x = left;
  return columns.map((column): Placed => {
    const at = { x, y: top + DROP };
    x += column.width + GAP;
    switch (column.kind) {
      case 'gpu': {
        const box = { x: at.x, y: bottom - GPU.height, ...GPU };
        return { kind: 'gpu', part: column.part, box, lane: column.hasLane ? at.x + GPU.width + LANE / 2 : null };
      }
      case 'pile':
        return {
          kind: 'pile',
          chips: column.chips,
          box: { ...at, width: column.width, height: pileHeight(column.chips) },
        };
      case 'switch': {
        const box = { ...at, width: column.bar, height: SWITCH_HEIGHT };
        const spare = (column.bar - Math.min(column.bar, span(column.below))) / 2;
        return {
          kind: 'switch',
          part: column.part,
          box,
          below: placeColumns(column.below, at.x + spare, at.y + SWITCH_HEIGHT, bottom),
        };
      }
      default:
        return column satisfies never;
    }
  });
}
