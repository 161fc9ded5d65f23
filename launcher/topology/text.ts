/** A machine as text: its PCI tree with what each link carries, then the paths. */
import { wrapped } from '../text/wrap.ts';
import type { Paint } from '../text/colour.ts';
import { socketRate } from './cpu-text.ts';
import { pathTables } from './matrix.ts';
import { nvlinkRows } from './nvlink-text.ts';
import type { CpuPart, GpuPart, NicPart, TopologyPart } from './part.ts';
import { pciText } from './pci-link.ts';
import { summary } from './summary.ts';
import type { Survey } from './survey.ts';
import { networkSpeed } from '../../control/speed-text.ts';
import { capability, gigabytes } from '../text/gpu-words.ts';

/** One line of the tree. */
export interface TopologyRow {
  /** Before the name: lines that lead to it. */
  readonly lead: string;
  readonly name: string;
  readonly about: string;
  /** The link to what is above it, and what it carries. */
  readonly link: string;
  readonly rate: string;
}

/** Where people read. */
const COLUMNS = 80;
/** "PCIe 5 x16", "NVLink x18" */
const LINK_COLUMNS = 10;
const RATE_COLUMNS = 5;

export function textOf(survey: Survey, paint: Paint): string {
  const rows = survey.cpus.flatMap((cpu) => [...cpuRows(cpu, survey), null]);
  const tree = treeText(rows, paint);
  const about = wrapped(`${survey.title}: ${summary(survey)}`, '', COLUMNS);
  const head = paint('bold', survey.title) + about.slice(survey.title.length);
  return [`${head}\n`, tree, pathTables(survey, paint)].join('');
}

function treeText(rows: readonly (TopologyRow | null)[], paint: Paint): string {
  const widths = rows.map((row) => (row === null ? 0 : leftText(row).length));
  const left = Math.min(
    widths.reduce((widest, width) => Math.max(widest, width), 0),
    COLUMNS - LINK_COLUMNS - RATE_COLUMNS - 4,
  );
  const head = `${' '.repeat(left)}  ${'link'.padEnd(LINK_COLUMNS)}  ${'GB/s'.padStart(RATE_COLUMNS)}`;
  const lines = rows
    .flatMap((row) => (row === null ? [null] : fitted(row, left)))
    .map((row) => {
      if (row === null) return '';
      const { lead, name, about, link, rate } = row;
      const gap = ' '.repeat(Math.max(0, left - leftText(row).length));
      const ends =
        link === '' && rate === '' ? '' : `${gap}  ${link.padEnd(LINK_COLUMNS)}  ${rate.padStart(RATE_COLUMNS)}`;
      return `${paint('dim', lead)}${paint('bold', name)}${about}${ends}`.trimEnd();
    });
  return `${paint('dim', head)}\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** What is too long goes on in a line of its own, where its commas allow. */
function fitted(row: TopologyRow, columns: number): TopologyRow[] {
  const at = row.about.lastIndexOf(', ');
  if (leftText(row).length <= columns || at === -1) return [row];
  const rest = { lead: continued(row.lead), name: '', about: `  ${row.about.slice(at + 2)}`, link: '', rate: '' };
  return [...fitted({ ...row, about: row.about.slice(0, at + 1) }, columns), rest];
}

/** The lines that go on below a part. */
function continued(lead: string): string {
  return lead.replace('├', '│').replace('└', ' ').replaceAll('─', ' ');
}

function leftText({ lead, name, about }: TopologyRow): string {
  return lead + name + about;
}

function cpuRows(cpu: CpuPart, { cpus }: Survey): TopologyRow[] {
  const socket = cpus.length > 1 ? socketRate(cpu.node) : null;
  const head: TopologyRow = {
    lead: '',
    name: cpu.name,
    about: cpu.model === '' ? '' : `  ${cpu.model}`,
    link: socket === null ? '' : 'socket',
    rate: socket === null ? '' : gigabytes(socket),
  };
  return [head, ...childRows(cpu.parts, '')];
}

function childRows(parts: readonly TopologyPart[], lead: string): TopologyRow[] {
  return parts.flatMap((part, index) => {
    const isLast = index === parts.length - 1;
    return partRows(part, `${lead}${isLast ? '└─ ' : '├─ '}`, `${lead}${isLast ? '   ' : '│  '}`);
  });
}

/** `lead`: before the part; `below`: before what belongs to it. */
function partRows(part: TopologyPart, lead: string, below: string): TopologyRow[] {
  switch (part.kind) {
    case 'switch':
      return [deviceRow(lead, 'switch', part), ...childRows(part.parts, below)];
    case 'device':
      return [deviceRow(lead, part.what, part)];
    case 'gpu':
      return gpuRows(part, lead, below);
    case 'nic':
      return nicRows(part, lead);
    default:
      return part satisfies never;
  }
}

function deviceRow(
  lead: string,
  name: string,
  { busId, link }: Extract<TopologyPart, { kind: 'switch' | 'device' }>,
): TopologyRow {
  return { lead, name, about: ` ${busId}`, link: pciText(link), rate: gigabytes(link.bandwidth) };
}

function gpuRows(gpu: GpuPart, lead: string, below: string): TopologyRow[] {
  const { busId, link, node } = gpu;
  const direct = node.gpuDirect ? '' : ', no GPUDirect';
  const part = node.part === null ? '' : `, part ${node.part}`;
  const about = `  ${busId}  ${capability(node.computeCapability)}${part}${direct}`;
  const own: TopologyRow = { lead, name: node.name, about, link: pciText(link), rate: gigabytes(link.bandwidth) };
  return [own, ...nvlinkRows(gpu, `${below}  `)];
}

/** A row for each port; the first has the NIC's own link. */
function nicRows({ busId, link, nets }: NicPart, lead: string): TopologyRow[] {
  return nets.map(({ index, name, megabits, node }, position) => {
    const direct = node.gpuDirect || link === null ? '' : ', no GPUDirect';
    const isFirst = position === 0;
    return {
      lead: isFirst ? lead : continued(lead),
      name: `NIC ${index}`,
      about: `  ${busId === null ? '' : `${busId}  `}${name}, ${networkSpeed(megabits)}${direct}`,
      link: link === null || !isFirst ? '' : pciText(link),
      rate: link === null || !isFirst ? '' : gigabytes(link.bandwidth),
    };
  });
}
