/** NICs that hang from one place, one above the other: side by side they would be too wide for 32 of them. */
import type { DevicePart, NicPart, PciLink, TopologyPart } from '../part.ts';
import { pciText } from '../pci-link.ts';
import { networkSpeed } from '../../../control/speed-text.ts';
import { different, gigabytes } from '../../text/gpu-words.ts';
import { textWidth } from './text-width.ts';

export const CHIP = { height: 36, gap: 7 };
/** In a pile. */
const MAX_PILE = 6;
/** Left of a pile: the line that its ports share. */
export const SPINE = 12;

export interface Chip {
  readonly title: string;
  readonly lines: readonly string[];
  readonly hint: string;
  readonly what: 'nic' | 'device';
  readonly link: PciLink | null;
}

export function pilesOf(parts: readonly TopologyPart[]): (readonly Chip[])[] {
  const chips = parts.flatMap((part) => {
    if (part.kind === 'nic') return nicChips(part);
    return part.kind === 'device' ? [deviceChip(part)] : [];
  });
  const piles: (readonly Chip[])[] = [];
  for (let start = 0; start < chips.length; start += MAX_PILE) {
    piles.push(withLinks(chips.slice(start, start + MAX_PILE)));
  }
  return piles;
}

export function pileWidth(pile: readonly Chip[]): number {
  const words = pile.flatMap(({ title, lines }) => [
    textWidth(title, 12, true),
    ...lines.map((line) => textWidth(line, 11)),
  ]);
  const label = pile.length > 1 ? pileLabel(pile).map((line) => textWidth(line, 10) + 10) : [];
  return Math.max(Math.max(...words, 48) + 16 + (pile.length > 1 ? SPINE : 0), ...label);
}

export function pileHeight(chips: readonly Chip[]): number {
  return chips.reduce((sum, chip) => sum + chipHeight(chip) + CHIP.gap, -CHIP.gap);
}

export function chipHeight({ lines }: Chip): number {
  return CHIP.height + (lines.length - 1) * 14;
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
  const location = busId === null || link === null ? 'no PCI device' : `${busId}, ${linkRate(link)}`;
  const hints = nets.map(({ index, name, megabits, node }) => {
    const direct = node.gpuDirect ? 'GPUDirect' : 'no GPUDirect';
    return `NIC ${index}: ${name}, ${networkSpeed(megabits)}, ${location}, ${direct}`;
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
