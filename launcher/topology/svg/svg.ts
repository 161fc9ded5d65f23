/** A machine as a picture that stands alone: no script, no font, nothing to fetch. */
import type { Survey } from '../survey.ts';
import { summary } from '../summary.ts';
import { drawFabric } from './fabric.ts';
import type { PlacedGpu } from './mesh.ts';
import { layOut } from './layout.ts';
import type { Placed, PlacedCpu } from './layout.ts';
import { drawLegend, legendWidth } from './legend.ts';
import { escaped, svgText, tag } from './markup.ts';
import { stylesheet } from './palette.ts';
import { textWidth } from './text-width.ts';
import { drawCpu, drawSockets } from './tree.ts';

const MARGIN = 24;
const HEAD = 60;
/** Between NUMA nodes: "22 GB/s" must fit. */
const BETWEEN = 56;

export function svgOf(survey: Survey): string {
  const { title, cpus } = survey;
  const about = summary(survey);
  const wide = layOut(cpus, 0, 0, BETWEEN);
  const right = Math.max(0, ...wide.map(({ frame }) => frame.x + frame.width));
  const content = Math.max(right, textWidth(title, 20, true), textWidth(about, 12), legendWidth(survey));
  const placed = layOut(cpus, MARGIN + (content - right) / 2, MARGIN + HEAD, BETWEEN);
  const top = Math.max(MARGIN + HEAD, ...placed.map(({ frame }) => frame.y + frame.height));
  const fabric = drawFabric(placed.flatMap(gpusOf), top, MARGIN, MARGIN + content);
  const width = Math.ceil(content + 2 * MARGIN);
  const height = Math.ceil(fabric.bottom + 62);
  const children = [
    tag('title', { id: 'ncclrun-topology-title' }, escaped(`Topology of ${title}`)),
    tag('desc', { id: 'ncclrun-topology-about' }, escaped(`${about}. ${description(survey)}`)),
    `<style>\n${stylesheet()}\n</style>`,
    tag('rect', { width, height, rx: 12, class: 'paper' }),
    svgText(MARGIN, MARGIN + 12, title, { size: 20, bold: true, anchor: 'start' }),
    svgText(MARGIN, MARGIN + 36, about, { size: 12, anchor: 'start', class: 'faint' }),
    ...placed.map((cpu) => tag('g', {}, drawCpu(cpu))),
    drawSockets(placed),
    fabric.markup,
    drawLegend(survey, MARGIN, height - 26),
  ];
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    class: 'ncclrun-topology',
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'aria-labelledby': 'ncclrun-topology-title ncclrun-topology-about',
  };
  return `${tag('svg', attributes, `\n${children.filter((child) => child !== '').join('\n')}\n`)}\n`;
}

function gpusOf({ below }: PlacedCpu): PlacedGpu[] {
  return below.flatMap(gpusBelow);
}

function gpusBelow(placed: Placed): PlacedGpu[] {
  if (placed.kind === 'gpu') return [{ part: placed.part, box: placed.box }];
  return placed.kind === 'switch' ? placed.below.flatMap(gpusBelow) : [];
}

/** For those who hear it. */
function description({ cpus, gpus, nets }: Survey): string {
  return cpus
    .map(({ name }, cpu) => {
      const here = [
        ...gpus.filter((gpu) => gpu.cpu === cpu).map(({ node }) => node.name),
        ...nets.filter((net) => net.cpu === cpu).map((net) => net.name),
      ];
      return `${name}: ${here.length === 0 ? 'nothing' : here.join(', ')}.`;
    })
    .join(' ');
}
