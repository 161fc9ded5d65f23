/** A plan's channels as a picture: a line of GPUs for each different channel, with the NICs at its ends. */
import type { ChannelView, GraphView, PlanView } from './view.ts';
import { counted } from '../text/counted.ts';

const BOX = { width: 46, height: 26, gap: 22 } as const;
const LEFT = 150;
const ROW = 44;

interface Line {
  readonly label: string;
  readonly channel: ChannelView;
  /** Back to where it begins: positions in the order of what sends; none: the channel goes on where it ends. */
  readonly senders: readonly number[];
}

export function planSvg(view: PlanView): string {
  const parts: string[] = [];
  let y = 70;
  let width = 640;
  for (const name of ['ring', 'tree', 'collnet'] as const) {
    const graph = view[name];
    if (graph === null) continue;
    parts.push(text(24, y, titleOf(name, graph, view.nodes), 'title'));
    y += 26;
    for (const line of linesOf(graph, view.nodes === 1)) {
      parts.push(lineSvg(line, y));
      width = Math.max(width, LEFT + (line.channel.order.length + 2) * (BOX.width + BOX.gap) + 40);
      y += ROW;
    }
    y += 24;
  }
  const hosts = counted(view.nodes, 'host');
  const title = `${view.ranks} ranks on ${hosts}: ${view.nChannels} channels`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
  svg { font: 13px system-ui, sans-serif; --ink: #1b1f24; --dim: #6a737d; --paper: #ffffff; --gpu: #d7f0d0; --nic: #dbe9ff; --line: #57606a; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --dim: #9aa4ae; --paper: #0d1117; --gpu: #1f4d2b; --nic: #1f3a66; --line: #9aa4ae; } }
  text { fill: var(--ink); } .dim { fill: var(--dim); } .title { font-weight: 600; } .head { font-size: 17px; font-weight: 600; }
  .gpu { fill: var(--gpu); stroke: var(--line); } .nic { fill: var(--nic); stroke: var(--line); }
  .edge { stroke: var(--line); stroke-width: 1.5; fill: none; marker-end: url(#arrow); }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="var(--line)"/></marker></defs>
<rect width="100%" height="100%" fill="var(--paper)"/>
${text(24, 36, title, 'head')}
${parts.join('\n')}
</svg>
`;
}

function titleOf(
  name: string,
  { nChannels, bwIntra, bwInter, typeIntra, typeInter, totalBw }: GraphView,
  nodes: number,
): string {
  const between = nodes === 1 ? '' : `, ${bwInter} GB/s between hosts (${typeInter})`;
  return `${name}: ${nChannels} channels, ${bwIntra} GB/s each inside a host (${typeIntra})${between}, ${Number(totalBw.toPrecision(4))} GB/s in all`;
}

/** Equal channels share a line. */
function linesOf({ channels, pattern }: GraphView, isOneHost: boolean): Line[] {
  const groups = new Map<string, { channel: ChannelView; numbers: number[] }>();
  channels.forEach((channel, index) => {
    const key = JSON.stringify(channel);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { channel, numbers: [index] });
    else known.numbers.push(index);
  });
  return [...groups.values()].map(({ channel, numbers }) => {
    const last = channel.order.length - 1;
    return { label: rangeOf(numbers), channel, senders: sendersOf(pattern, last, isOneHost) };
  });
}

function sendersOf(pattern: GraphView['pattern'], last: number, isOneHost: boolean): number[] {
  if (pattern === 'ring') return isOneHost && last > 0 ? [last] : [];
  if (isOneHost) return [];
  return pattern === 'balancedTree' && last > 0 ? [0, 1] : [pattern === 'splitTree' ? Math.min(1, last) : 0];
}

function rangeOf(numbers: readonly number[]): string {
  const [first = 0] = numbers;
  const last = numbers.at(-1) ?? first;
  if (numbers.length === 1) return `channel ${first}`;
  return last - first + 1 === numbers.length ? `channels ${first}–${last}` : `channels ${numbers.join(', ')}`;
}

function lineSvg({ label, channel, senders }: Line, y: number): string {
  const [enters, leaves] = channel.nics;
  const nodes = [
    ...(enters === undefined ? [] : [{ kind: 'nic', label: `net ${enters}` }]),
    ...channel.order.map((rank) => ({ kind: 'gpu', label: `GPU ${rank}` })),
    ...(leaves === undefined || senders.length > 0 ? [] : [{ kind: 'nic', label: `net ${leaves}` }]),
  ];
  const at = (index: number): number => LEFT + index * (BOX.width + BOX.gap);
  const middle = y + BOX.height / 2;
  const boxes = nodes.map(
    (node, index) =>
      `<rect class="${node.kind}" x="${at(index)}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="5"/>` +
      text(at(index) + BOX.width / 2, middle + 4, node.label, '', 'middle'),
  );
  const edges = nodes
    .slice(1)
    .map((_, index) => `<path class="edge" d="M${at(index) + BOX.width} ${middle}H${at(index + 1) - 2}"/>`);
  const bottom = y + BOX.height;
  for (const sender of senders) {
    const from = at(sender + (enters === undefined ? 0 : 1)) + BOX.width / 2;
    edges.push(`<path class="edge" d="M${from} ${bottom}v9H${at(0) + BOX.width / 2}V${bottom + 2}"/>`);
  }
  return [text(24, middle + 4, label, 'dim'), ...boxes, ...edges].join('\n');
}

function text(x: number, y: number, words: string, style: string, anchor = 'start'): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" class="${style}" text-anchor="${anchor}">${escaped}</text>`;
}
