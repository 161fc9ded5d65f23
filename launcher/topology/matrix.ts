/** Paths between GPUs, and from GPUs to NICs, as tables in the way of `nvidia-smi topo -m`. */
import type { Path, PathType } from '../../control/planner/machine/path.ts';
import { PATH_TYPES } from '../../control/planner/machine/path.ts';
import type { Paint } from '../text/colour.ts';
import { ranges } from '../text/ranges.ts';
import type { GpuPart } from './part.ts';
import type { Survey } from './survey.ts';
import { gigabytes } from '../text/gpu-words.ts';

const COLUMNS = 80;

const MEANINGS: Readonly<Record<PathType, string>> = {
  LOC: 'the same device',
  NVL: 'NVLinks',
  NVB: 'NVLinks, through another GPU',
  C2C: 'NVLink-C2C',
  PIX: 'one PCI switch',
  PXB: 'several PCI switches',
  P2C: "NVLink-C2C to the GPU's processor, then PCI",
  PXN: 'NVLinks to the GPU next to the NIC, which hands on; only to send',
  PHB: 'the host bridge of a processor',
  SYS: 'the link between NUMA nodes',
  NET: 'the network',
  DIS: 'there is no path',
};

/** What goes through a processor's memory is worth a look. */
const SLOW: ReadonlySet<PathType> = new Set(['PHB', 'SYS', 'DIS']);

interface Line {
  readonly label: string;
  /** One for each GPU; null: the GPU itself. */
  readonly paths: readonly (Path | null)[];
}

/** Empty for a machine without GPUs. */
export function pathTables({ gpus, nets, routes }: Survey, paint: Paint): string {
  const between = gpus.map((from): Line => {
    const paths = gpus.map((to) => (from === to ? null : routes.path(from.node, to.node)));
    return { label: from.node.name, paths };
  });
  const toNics = nets.map((net): Line => {
    return { label: `${net.index}`, paths: gpus.map((gpu) => routes.path(gpu.node, net.node)) };
  });
  const tables = [
    gpus.length > 1 ? table('Paths between GPUs, GB/s', gpus, between, paint) : '',
    gpus.length > 0 && nets.length > 0 ? table('Paths from GPUs to NICs, GB/s', gpus, folded(toNics), paint) : '',
  ];
  const types = new Set(
    [...(gpus.length > 0 ? toNics : []), ...between].flatMap(({ paths }) => paths.map((path) => path?.type)),
  );
  return [...tables, legend(PATH_TYPES.filter((type) => types.has(type)))].filter((text) => text !== '').join('\n');
}

/** As many GPUs side by side as the page is wide. */
function table(title: string, gpus: readonly GpuPart[], lines: readonly Line[], paint: Paint): string {
  const labels = lines.map(({ label }) => label);
  const first = longest(labels);
  const cells = lines.map(({ paths }) => paths.map(cellText));
  const heads = gpus.map(({ node }) => node.name);
  const width = Math.max(longest(heads), ...cells.map(longest));
  const atOnce = Math.max(1, Math.floor((COLUMNS - first) / (width + 2)));
  let text = `${paint('bold', title)}\n`;
  for (let start = 0; start < gpus.length; start += atOnce) {
    const end = start + atOnce;
    const head = heads.slice(start, end).map((name) => name.padEnd(width));
    text += `${start === 0 ? '' : '\n'}${paint('dim', [' '.repeat(first), ...head].join('  ').trimEnd())}\n`;
    for (const [row, { label, paths }] of lines.entries()) {
      const shown = paths.slice(start, end).map((path, column) => {
        const cell = cells[row]?.[start + column] ?? '';
        const padded = start + column === Math.min(end, gpus.length) - 1 ? cell : cell.padEnd(width);
        if (path === null) return paint('dim', padded);
        return SLOW.has(path.type) ? paint('yellow', padded) : padded;
      });
      text += `${[label.padEnd(first), ...shown].join('  ')}\n`;
    }
  }
  return text;
}

function longest(texts: readonly string[]): number {
  return texts.reduce((length, text) => Math.max(length, text.length), 0);
}

function cellText(path: Path | null): string {
  if (path === null) return 'X';
  return path.type === 'DIS' ? path.type : `${path.type} ${gigabytes(path.bandwidth)}`;
}

/** Successive NICs with the same paths share a line. */
function folded(lines: readonly Line[]): Line[] {
  const groups: { readonly numbers: number[]; readonly paths: Line['paths'] }[] = [];
  for (const { label, paths } of lines) {
    const last = groups.at(-1);
    if (last !== undefined && keyOf(last.paths) === keyOf(paths)) last.numbers.push(Number(label));
    else groups.push({ numbers: [Number(label)], paths });
  }
  return groups.map(({ numbers, paths }) => ({ label: `NIC ${ranges(numbers)}`, paths }));
}

function keyOf(paths: Line['paths']): string {
  return paths.map(cellText).join();
}

function legend(types: readonly PathType[]): string {
  return types.map((type) => `${type}  ${MEANINGS[type]}\n`).join('');
}
