/** NUMA nodes, PCI tree, GPUs and NICs. */
import { socketRate } from '../cpu-text.ts';
import type { GpuPart, PciLink } from '../part.ts';
import { pciText } from '../pci-link.ts';
import { capability, gigabytes } from '../../text/gpu-words.ts';
import type { Box, Placed, PlacedCpu } from './layout.ts';
import { CHIP, chipHeight, pileLabel, SPINE } from './pile.ts';
import type { Chip } from './pile.ts';
import { label, svgGroup, svgText, tag } from './markup.ts';

/** Lines first: what they end at is drawn over them. */
export function drawCpu({ part, frame, bar, below }: PlacedCpu): string {
  const middle = centre(bar);
  const words =
    svgText(middle, bar.y + 15, part.name, { size: 14, bold: true }) +
    (part.model === '' ? '' : svgText(middle, bar.y + 32, part.model, { size: 11, class: 'faint' }));
  return [
    tag('rect', { ...frame, rx: 14, class: 'numa' }),
    ...below.map((placed) => drawProcessorLinks(placed, bar)),
    ...below.map((placed) => drawPart(placed, bar)),
    svgGroup('cpu', `${part.name}: ${part.model}`, tag('rect', { ...bar, rx: 7 }) + words),
  ].join('');
}

/** Between neighbours stands for between any two. */
export function drawSockets(cpus: readonly PlacedCpu[]): string {
  return cpus
    .map(({ part, bar }, index) => {
      const next = cpus[index + 1];
      const rate = socketRate(part.node);
      if (next === undefined) return '';
      const y = bar.y + bar.height / 2;
      const [x1, x2] = [bar.x + bar.width, next.bar.x];
      const line = tag('path', { d: `M${round(x1)} ${round(y)}H${round(x2)}`, class: 'socket', 'stroke-width': 4 });
      const words =
        rate === null ? '' : svgText((x1 + x2) / 2, y - 12, `${gigabytes(rate)} GB/s`, { size: 11, class: 'faint' });
      const hint =
        rate === null ? 'between NUMA nodes' : `between any two NUMA nodes: ${gigabytes(rate)} GB/s each way`;
      return svgGroup('link', hint, line + words);
    })
    .join('');
}

function drawPart(placed: Placed, above: Box): string {
  switch (placed.kind) {
    case 'switch': {
      const { part, box, below } = placed;
      const words = svgText(centre(box), box.y + box.height / 2, part.busId, { size: 11 });
      return [
        drawLink(centre(box), bottomOf(above), box.y, part.link),
        ...below.map((one) => drawPart(one, box)),
        svgGroup('switch', `PCI switch ${part.busId}, ${linkText(part.link)}`, tag('rect', { ...box, rx: 6 }) + words),
      ].join('');
    }
    case 'gpu':
      return drawGpu(placed.part, placed.box, above);
    case 'pile':
      return drawPile(placed.chips, placed.box, above);
    default:
      return placed satisfies never;
  }
}

function drawGpu({ node, busId, link }: GpuPart, box: Box, above: Box): string {
  const x = centre(box);
  const words =
    svgText(x, box.y + 17, node.name, { size: 14, bold: true }) +
    svgText(x, box.y + 34, capability(node.computeCapability), { size: 11, class: 'faint' }) +
    svgText(x, box.y + 49, busId, { size: 10, class: 'faint' });
  const hint = `${node.name}, ${capability(node.computeCapability)}, ${busId}, ${linkText(link)}, ${node.gpuDirect ? 'GPUDirect' : 'no GPUDirect'}`;
  return drawLink(x, bottomOf(above), box.y, link) + svgGroup('gpu', hint, tag('rect', { ...box, rx: 9 }) + words);
}

/** One beside the other would be too wide for 32 NICs. */
function drawPile(chips: readonly Chip[], box: Box, above: Box): string {
  const [only] = chips;
  if (chips.length === 1 && only !== undefined) {
    return drawLink(centre(box), bottomOf(above), box.y, only.link) + drawChip(only, box);
  }
  const x = box.x + 2;
  let y = box.y;
  let end = y;
  const rows = chips.map((chip) => {
    const height = chipHeight(chip);
    const middle = y + height / 2;
    const own = { x: box.x + SPINE, y, width: box.width - SPINE, height };
    end = middle;
    y += height + CHIP.gap;
    return pciLine(`M${round(x)} ${round(middle)}H${round(own.x)}`, chip.link) + drawChip(chip, own);
  });
  const links = chips.map(({ link }) => link).toSorted((one, other) => width(other) - width(one));
  const [link = null] = links;
  const spine = pciLine(`M${round(x)} ${round(bottomOf(above))}V${round(end)}`, link);
  const style = { size: 10, anchor: 'start', class: 'faint' } as const;
  const words = pileLabel(chips).map((line, index) => svgText(x + 8, box.y - 29 + 12 * index, line, style));
  return spine + rows.join('') + words.join('');
}

function drawChip({ title, lines, hint, what }: Chip, box: Box): string {
  const x = centre(box);
  const words =
    svgText(x, box.y + 12, title, { size: 12, bold: true }) +
    lines.map((line, index) => svgText(x, box.y + 26 + index * 14, line, { size: 11, class: 'faint' })).join('');
  return svgGroup(what, hint, tag('rect', { ...box, rx: 7 }) + words);
}

function drawLink(x: number, from: number, to: number, link: PciLink | null): string {
  const line = pciLine(`M${round(x)} ${round(from)}V${round(to)}`, link);
  if (link === null) return line;
  return line + label(x, from + 23, [pciText(link), `${gigabytes(link.bandwidth)} GB/s`], 10, 'inside');
}

/** `link` null: there is none, the device belongs there all the same. */
function pciLine(d: string, link: PciLink | null): string {
  const dashes = link === null ? { 'stroke-dasharray': '2 4' } : {};
  return tag('path', { d, class: 'pci', 'stroke-width': width(link), ...dashes });
}

/** NVLink-C2C, or NVLinks to the processor: round the GPU's side up to it. */
function drawProcessorLinks(placed: Placed, bar: Box): string {
  if (placed.kind === 'switch') return placed.below.map((one) => drawProcessorLinks(one, bar)).join('');
  if (placed.kind !== 'gpu' || placed.lane === null) return '';
  const { part, box, lane } = placed;
  const y = box.y + box.height / 2;
  const d = `M${round(box.x + box.width)} ${round(y)}H${round(lane - 14)}Q${round(lane)} ${round(y)} ${round(lane)} ${round(y - 14)}V${round(bottomOf(bar))}`;
  const nvlinks = part.nvlinks.filter(({ to }) => to.type === 'cpu');
  const bandwidth = part.c2c ?? nvlinks.reduce((sum, link) => sum + link.bandwidth, 0);
  const name = part.c2c === null ? 'NVLink' : 'C2C';
  const line = tag('path', { d, class: part.c2c === null ? 'nvlink' : 'c2c', 'stroke-width': 6 });
  const words = label(lane, (y + bottomOf(bar)) / 2, [name, `${gigabytes(bandwidth)} GB/s`], 10, 'inside');
  return svgGroup(
    'link',
    `${part.node.name} to its processor: ${name}, ${gigabytes(bandwidth)} GB/s each way`,
    line + words,
  );
}

function linkText(link: PciLink): string {
  return `${pciText(link)}, ${gigabytes(link.bandwidth)} GB/s each way`;
}

/** Lines grow with what they carry, but 3 GB/s must be seen and 100 must not cover all. */
function width(link: PciLink | null): number {
  return link === null ? 1.5 : Math.min(5, Math.max(1.5, 0.45 * Math.sqrt(link.bandwidth / 1000)));
}

export function centre({ x, width }: Box): number {
  return x + width / 2;
}

export function bottomOf({ y, height }: Box): number {
  return y + height;
}

export function round(value: number): number {
  return Number(value.toFixed(1));
}
