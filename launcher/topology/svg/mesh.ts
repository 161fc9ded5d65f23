/** NVLinks between GPUs: arcs below them. */
import type { GpuPart, Nvlinks } from '../part.ts';
import { count } from '../nvlink-text.ts';
import { counted } from '../../text/counted.ts';
import { gigabytes } from '../../text/gpu-words.ts';
import type { Box } from './layout.ts';
import { label, svgGroup, tag } from './markup.ts';
import { bottomOf, centre, round } from './tree.ts';

export interface PlacedGpu {
  readonly part: GpuPart;
  readonly box: Box;
}

export interface Drawing {
  readonly markup: string;
  readonly bottom: number;
}

interface Arc {
  /** Left and right, by place. */
  readonly one: number;
  readonly other: number;
  readonly count: number;
  readonly bandwidth: number;
}

/** From one apex to the next deeper one. */
const STEP = 22;

interface PlacedArc {
  readonly arc: Arc;
  readonly left: PlacedGpu;
  readonly right: PlacedGpu;
  readonly x1: number;
  readonly x2: number;
}

export function drawMesh(gpus: readonly PlacedGpu[], top: number): Drawing {
  const loops = gpus.map(({ part, box }) => drawLoop(part, box, top)).filter((loop) => loop !== '');
  const levels = levelled(placedArcs(gpus));
  const drawn = levels.flatMap((level, depth) => level.map((arc) => drawArc(arc, top + 4, 30 + STEP * depth)));
  const deepest = levels.length > 0 ? top + 46 + STEP * (levels.length - 1) : top;
  const bottom = loops.length > 0 ? Math.max(deepest, top + 46) : deepest;
  const lines = drawn.map(({ line }) => line).toReversed(); // what is near lies above what is far
  return { markup: [...lines, ...loops, ...drawn.map(({ words }) => words)].join(''), bottom };
}

/** The shortest are the shallowest, and those of one depth lie beside each other. */
function levelled(arcs: readonly PlacedArc[]): PlacedArc[][] {
  const levels: PlacedArc[][] = [];
  for (const arc of arcs.toSorted((one, other) => one.x2 - one.x1 - (other.x2 - other.x1))) {
    const free = levels.find((level) => level.every(({ x1, x2 }) => x2 < arc.x1 || arc.x2 < x1));
    if (free === undefined) levels.push([arc]);
    else free.push(arc);
  }
  return levels;
}

function placedArcs(gpus: readonly PlacedGpu[]): PlacedArc[] {
  const arcs = arcsOf(gpus);
  return arcs.flatMap((arc) => {
    const [left, right] = [gpus[arc.one], gpus[arc.other]];
    if (left === undefined || right === undefined) return [];
    const { from, to } = ports(arcs, arc);
    return [{ arc, left, right, x1: left.box.x + left.box.width * from, x2: right.box.x + right.box.width * to }];
  });
}

/** Both GPUs name a link; where they differ, the larger number is drawn. */
function arcsOf(gpus: readonly PlacedGpu[]): Arc[] {
  const gpuIndex = new Map(gpus.map(({ part }, index) => [part.index, index]));
  const arcs = new Map<string, Arc>();
  for (const [from, { part }] of gpus.entries()) {
    for (const link of part.nvlinks) {
      const to = link.to.type === 'gpu' ? gpuIndex.get(link.to.index) : undefined;
      if (to === undefined || to === from) continue;
      const [one, other] = [Math.min(from, to), Math.max(from, to)];
      const known = arcs.get(`${one}-${other}`);
      if (known === undefined || known.count < link.count)
        arcs.set(`${one}-${other}`, { one, other, count: link.count, bandwidth: link.bandwidth });
    }
  }
  return [...arcs.values()];
}

/** Where on the lower edges of its GPUs an arc begins and ends, from 0 to 1: nearer ends lie further out, so that arcs of one GPU do not cross. */
function ports(arcs: readonly Arc[], arc: Arc): { readonly from: number; readonly to: number } {
  return { from: portOf(arc.one), to: portOf(arc.other) };

  function portOf(gpu: number): number {
    const own = arcs.filter(({ one, other }) => one === gpu || other === gpu);
    const peer = (one: Arc): number => (one.one === gpu ? one.other : one.one);
    const toLeft = own.filter((one) => peer(one) < gpu).toSorted((one, other) => peer(other) - peer(one));
    const toRight = own.filter((one) => peer(one) > gpu).toSorted((one, other) => peer(other) - peer(one));
    return ([...toLeft, ...toRight].indexOf(arc) + 1) / (own.length + 1);
  }
}

function drawArc({ arc, left, right, x1, x2 }: PlacedArc, top: number, depth: number) {
  const low = round(top + depth / 0.75);
  const [from, to] = [round(x1), round(x2)];
  const curve = `C${from} ${low} ${to} ${low} ${to} ${round(top)}`;
  const d = `M${from} ${bottomOf(left.box)}V${round(top)}${curve}V${bottomOf(right.box)}`;
  const line = tag('path', { d, class: 'nvlink', 'stroke-width': stroke(arc.count) });
  // Where arcs cross, one is seen to lie over the other.
  const casing = tag('path', {
    d: `M${from} ${round(top)}${curve}`,
    class: 'casing',
    'stroke-width': stroke(arc.count) + 3,
  });
  const hint = `${left.part.node.name} to ${right.part.node.name}: ${counted(arc.count, 'NVLink')}, ${gigabytes(arc.bandwidth)} GB/s each way`;
  const words = label((x1 + x2) / 2, top + depth, [`×${arc.count}`], 11, 'paper');
  return { line: svgGroup('link', hint, casing + line), words };
}

/** NVLinks that end where they began, as some virtual machines show them. */
function drawLoop(part: GpuPart, box: Box, top: number): string {
  const own: Nvlinks[] = part.nvlinks.filter(({ to }) => to.type === 'gpu' && to.index === part.index);
  if (own.length === 0) return '';
  const x = centre(box);
  const [from, to] = [round(x - 20), round(x + 20)];
  const low = round(top + 34 / 0.75);
  const d = `M${from} ${bottomOf(box)}V${round(top)}C${from} ${low} ${to} ${low} ${to} ${round(top)}V${bottomOf(box)}`;
  const line = tag('path', { d, class: 'nvlink', 'stroke-width': Math.min(5, stroke(count(own))) });
  const hint = `${part.node.name} to itself: ${counted(count(own), 'NVLink')}`;
  return svgGroup('link', hint, line + label(x, top + 34, [`×${count(own)}`], 11, 'paper'));
}

/** As many as there are links, but 18 would cover the page. */
export function stroke(links: number): number {
  return links <= 4 ? 1.7 * links : Math.min(12, 4 + 0.55 * links);
}
