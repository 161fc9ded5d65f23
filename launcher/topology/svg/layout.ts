/**
 * Where everything stands. A processor and a switch are bars over all that is below them, so every link is a straight line down; GPUs stand side by
 * side on one line at the bottom, where the NVLinks begin; NICs are piled up beside them.
 */
import type { CpuPart, DevicePart, GpuPart, NicPart, Part, PciLink, SwitchPart } from '../part.ts';
import { different, gigabytes, networkSpeed } from '../words.ts';
import { pciText } from '../pci-link.ts';
import { textWidth } from './text-width.ts';

export const GPU = { width: 88, height: 62 };
export const CHIP = { height: 36, gap: 7, atMost: 6 };
export const SWITCH_HEIGHT = 26;
export const CPU_HEIGHT = 44;
/** From a bar to what is below it: room for what the link is. */
export const DROP = 46;
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

export interface Chip {
  readonly title: string;
  readonly lines: readonly string[];
  readonly hint: string;
  readonly what: 'nic' | 'device';
  readonly link: PciLink | null;
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
    return { part, frame, bar, below: place(below, bar.x + (inner - span(below)) / 2, start, bottom) };
  });
}

/** GPUs and switches as in the file, then what is piled up. */
function sizes(parts: readonly Part[]): Sized[] {
  const columns = parts.flatMap((part): Sized[] => {
    if (part.kind === 'switch') return [sizedSwitch(part)];
    if (part.kind !== 'gpu') return [];
    const hasLane = part.c2c !== null || part.nvlinks.some(({ to }) => to.type === 'cpu');
    return [{ kind: 'gpu', part, width: GPU.width + (hasLane ? LANE : 0), hasLane }];
  });
  const chips = parts.flatMap((part) => {
    if (part.kind === 'nic') return nicChips(part);
    return part.kind === 'device' ? [deviceChip(part)] : [];
  });
  for (let start = 0; start < chips.length; start += CHIP.atMost) {
    const pile = withLinks(chips.slice(start, start + CHIP.atMost));
    const words = pile.flatMap(({ title, lines }) => [
      textWidth(title, 12, true),
      ...lines.map((line) => textWidth(line, 11)),
    ]);
    const label = pile.length > 1 ? pileLabel(pile).map((line) => textWidth(line, 10) + 10) : [];
    const width = Math.max(Math.max(...words, 48) + 16 + (pile.length > 1 ? SPINE : 0), ...label);
    columns.push({ kind: 'pile', chips: pile, width });
  }
  return columns;
}

/** Left of a pile: the line that its ports share. */
export const SPINE = 12;

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

export function pileHeight(chips: readonly Chip[]): number {
  return chips.reduce((sum, chip) => sum + chipHeight(chip) + CHIP.gap, -CHIP.gap);
}

export function chipHeight({ lines }: Chip): number {
  return CHIP.height + (lines.length - 1) * 14;
}

function place(columns: readonly Sized[], left: number, top: number, bottom: number): Placed[] {
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
          below: place(column.below, at.x + spare, at.y + SWITCH_HEIGHT, bottom),
        };
      }
      default:
        return column satisfies never;
    }
  });
}

/** Chips of a pile whose links differ say themselves what theirs is. */
function withLinks(pile: readonly Chip[]): readonly Chip[] {
  if (isAlike(pile)) return pile;
  return pile.map((chip) => (chip.link === null ? chip : { ...chip, lines: [...chip.lines, linkRate(chip.link)] }));
}

/** Beside the line that all share; nothing where their links differ. */
export function pileLabel(pile: readonly Chip[]): string[] {
  const [link] = pile.map((chip) => chip.link);
  if (link === undefined || link === null || !isAlike(pile)) return [];
  return [pciText(link), `${gigabytes(link.bandwidth)} GB/s each`];
}

function isAlike(pile: readonly Chip[]): boolean {
  return different(pile.map(({ link }) => (link === null ? '' : linkRate(link)))).length === 1;
}

function linkRate(link: PciLink): string {
  return `${pciText(link)}, ${gigabytes(link.bandwidth)} GB/s`;
}

/** Ports of one device share its link: they are one chip. */
function nicChips({ nets, busId, link }: NicPart): Chip[] {
  const place = busId === null || link === null ? 'no PCI device' : `${busId}, ${linkRate(link)}`;
  const hints = nets.map(({ index, name, megabits, node }) => {
    const direct = node.gpuDirect ? 'GPUDirect' : 'no GPUDirect';
    return `NIC ${index}: ${name}, ${networkSpeed(megabits)}, ${place}, ${direct}`;
  });
  if (nets.length > 1 && busId !== null) {
    const lines = nets.map(({ name, megabits }) => `${name}, ${networkSpeed(megabits)}`);
    return [{ title: busId, lines, hint: hints.join('; '), what: 'nic', link }];
  }
  return nets.map(({ name, megabits }, index) => {
    return { title: name, lines: [networkSpeed(megabits)], hint: hints[index] ?? '', what: 'nic', link };
  });
}

function deviceChip({ what, busId, link }: DevicePart): Chip {
  return {
    title: what,
    lines: [busId],
    hint: `${what} ${busId}, ${pciText(link)}: nothing more is known`,
    what: 'device',
    link,
  };
}
