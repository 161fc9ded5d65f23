/** A plan for people. */
import { printableLine } from '../../control/printable.ts';
import type { GraphView, PlanView, ShapeView, VariantView } from './view.ts';
import { channelNicsText, nicsText } from './nics-text.ts';
import { columns } from '../text/columns.ts';
import { counted } from '../text/counted.ts';

export function planText(view: PlanView, explain: boolean): string {
  const { nodes, ranks, nChannels, shapes } = view;
  const hosts = counted(nodes, 'host');
  const measured = view.table === null ? '' : `  measured: ${printableLine(view.table)}\n`;
  const variables = view.variables.map((variable) => `  heeded: ${printableLine(variable)}\n`).join('') + measured;
  const head = `${ranks} ranks on ${hosts}, ${nChannels} channels\n${variables}\n`;
  const parts = [head, graphsText(view), channelsText(view), nicsText(view), hierarchyText(view)];
  if (explain) parts.push(explanation(shapes, view), channelNicsText(shapes), memoryText(view));
  if (view.tuning.length > 0) parts.push(collnetText(view), tuningText(view, explain));
  return parts.join('');
}

const GRAPHS = ['ring', 'tree', 'collnet'] as const;

function graphsText(view: PlanView): string {
  const rows = [
    ['graph', 'channels', 'GB/s inside', 'GB/s between', 'paths inside', 'paths between', 'GB/s in all', ''],
  ];
  for (const name of GRAPHS) {
    const graph = view[name];
    if (graph !== null) rows.push(graphRow(name, graph, view.nodes));
  }
  return `${columns(rows)}\n${bottlenecks(view)}\n`;
}

/** Why the graphs are no faster. */
function bottlenecks(view: PlanView): string {
  const lines = GRAPHS.flatMap((name) => {
    const bottleneck = view[name]?.bottleneck ?? null;
    if (bottleneck === null) return [];
    const { from, to, load, bandwidth, others } = bottleneck;
    const more = others === 0 ? '' : `, and ${others} more as full`;
    return [
      `${name}: the fullest link is ${from} → ${to}, ${shortNumber(load)} of ${shortNumber(bandwidth)} GB/s${more}\n`,
    ];
  });
  return lines.join('');
}

/** With four digits at most. */
function shortNumber(value: number): string {
  return String(Number(value.toPrecision(4)));
}

function graphRow(name: string, graph: GraphView, nodes: number): string[] {
  const { nChannels, bwIntra, bwInter, typeIntra, typeInter, totalBw, sameChannels, crossNic, pattern } = graph;
  const notes = [
    name === 'tree' ? PATTERN_NOTES[pattern] : '',
    sameChannels === 1 ? 'all channels alike' : '',
    crossNic === 2 ? 'NICs swapped in pairs' : '',
  ];
  const between = nodes === 1 ? ['-', '-'] : [String(bwInter), typeInter];
  return [
    name,
    String(nChannels),
    String(bwIntra),
    between[0] ?? '',
    typeIntra,
    between[1] ?? '',
    shortNumber(totalBw),
    notes.filter((note) => note !== '').join(', '),
  ];
}

const PATTERN_NOTES = {
  ring: '',
  balancedTree: 'balanced',
  splitTree: 'split',
  tree: 'plain',
  collnetDirect: 'direct',
} as const;

/** Equal channels in one line. */
function channelsText(view: PlanView): string {
  const lines: string[] = [];
  for (const name of GRAPHS) {
    const graph = view[name];
    if (graph === null) continue;
    lines.push(`${name}: ranks of a host in order${view.nodes > 1 ? ', NIC in and out' : ''}\n`);
    let from = 0;
    graph.channels.forEach((channel, index) => {
      const next = graph.channels[index + 1];
      if (next !== undefined && JSON.stringify(next) === JSON.stringify(channel)) return;
      const numbers = from === index ? `${index}` : `${from}-${index}`;
      const nics = channel.nics.length === 0 ? '' : `   net ${channel.nics.join(' → ')}`;
      lines.push(`  ${numbers.padStart(5)}: ${channel.order.join(' ')}${nics}\n`);
      from = index + 1;
    });
    lines.push('\n');
  }
  return lines.join('');
}

function hierarchyText({ hierarchical }: PlanView): string {
  if (hierarchical === null) return '';
  const { rails, bwInter, totalBw, typeInter, nics } = hierarchical;
  const speed = `${shortNumber(bwInter)} GB/s each, ${shortNumber(totalBw)} in all`;
  return `direct inside hosts: ${rails} rails between them, ${speed} (${typeInter}); net ${nics.join(' ')}\n\n`;
}

function explanation(shapes: readonly ShapeView[], view: PlanView): string {
  const rows = [['host', 'hosts', 'graph', 'channels', 'GB/s inside', 'GB/s between', 'paths inside', 'paths between']];
  for (const name of GRAPHS) {
    shapes.forEach((shape, index) => {
      const graph = shape[name];
      if (graph !== null) rows.push([`kind ${index}`, String(shape.hosts), name, ...agreementCells(graph)]);
    });
    const agreed = view[name];
    if (agreed !== null) rows.push(['minimum', String(view.nodes), name, ...agreementCells(agreed)]);
  }
  return `${columns(rows)}\n`;
}

const MEBIBYTE = 2 ** 20;

function inMiB(bytes: number): string {
  return (bytes / MEBIBYTE).toFixed(1);
}

/** As the engine logs it with NCCL_DEBUG=INFO. */
function memoryText({ memory }: PlanView): string {
  if (memory === null) return '';
  const { total, rings, ll, ll128, simple, counters, tables } = memory;
  const pairs = `pairs ${inMiB(ll + ll128 + simple)} (LL ${inMiB(ll)}, LL128 ${inMiB(ll128)}, Simple ${inMiB(simple)})`;
  const rest = `counters ${inMiB(counters)}, tables ${inMiB(tables)}`;
  return `memory of each GPU: ${inMiB(total)} MiB: rings ${inMiB(rings)}, ${pairs}, ${rest}\n\n`;
}

function agreementCells({ nChannels, bwIntra, bwInter, typeIntra, typeInter }: GraphView): string[] {
  return [String(nChannels), String(bwIntra), String(bwInter), typeIntra, typeInter];
}

function collnetText({ reducedByNetwork }: PlanView): string {
  if (reducedByNetwork === null) return '';
  const form = reducedByNetwork === 'collnet' ? 'directly' : 'by chains inside the hosts';
  return `${reducedByNetwork}: where the network reduces the type and operator of an all_reduce, ${form}; else:\n\n`;
}

/** Of the variants that are not taken, so many are named. */
const OTHERS = 3;

function tuningText({ tuning, table }: PlanView, explain: boolean): string {
  const isMeasured = table !== null;
  const rows = [
    [
      'collective',
      'bytes',
      'algorithm',
      'protocol',
      'predicted µs',
      ...(isMeasured ? ['measured µs'] : []),
      'bus GB/s',
      ...(explain ? ['instead of'] : []),
    ],
  ];
  for (const one of tuning) {
    const next = one.others.filter(({ isPossible }) => isPossible).slice(0, OTHERS);
    rows.push([
      one.collective,
      String(one.bytes),
      one.algorithm,
      one.protocol,
      String(one.predictedMicroseconds),
      ...(isMeasured ? [one.measuredMicroseconds === null ? '' : String(one.measuredMicroseconds)] : []),
      String(one.predictedBusBw),
      ...(explain ? [next.map(variantText).join(', ')] : []),
    ]);
  }
  return columns(rows);
}

function variantText({ algorithm, protocol, predictedMicroseconds, measuredMicroseconds }: VariantView): string {
  const measured = measuredMicroseconds === null ? '' : ` (measured ${measuredMicroseconds})`;
  return `${algorithm} ${protocol} ${predictedMicroseconds}${measured}`;
}
